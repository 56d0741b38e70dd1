#include "model/record.h"

#include <string.h>

#include "base/compiler.h"

static const struct {
        const char *name;
        size_t offset;
} fields[] = {
    {RECORD_SOURCE, offsetof(struct record, source)},
    {RECORD_WEBHOOK_ID, offsetof(struct record, webhook_id)},
    {RECORD_TIMESTAMP, offsetof(struct record, timestamp)},
    {RECORD_REPLAY_OF, offsetof(struct record, replay_of)},
    {RECORD_RELEASED, offsetof(struct record, released)},
    {RECORD_TRACEPARENT, offsetof(struct record, traceparent)},
    {RECORD_TRACESTATE, offsetof(struct record, tracestate)},
};

void
record_add_header(struct record *record, const char *name, struct span value)
{
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                if (strcmp(name, fields[i].name) == 0) {
                        memcpy((char *)record + fields[i].offset, &value, sizeof(value));
                        return;
                }
        }
}
