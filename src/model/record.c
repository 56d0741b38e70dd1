#include "model/record.h"

#include <string.h>

#include "base/compiler.h"

#define SIGNED_DIGITS 10

#define FIELD(name, member) \
        { \
                name, sizeof(name) - 1, offsetof(struct record, member) \
        }

static const struct {
        const char *name;
        size_t len;
        size_t offset;
} fields[] = {
    FIELD(RECORD_SOURCE, source),           FIELD(RECORD_WEBHOOK_ID, webhook_id),
    FIELD(RECORD_TIMESTAMP, timestamp),     FIELD(RECORD_SIGNATURE, signature),
    FIELD(RECORD_RECEIVED, received),       FIELD(RECORD_REQUEST_ID, request_id),
    FIELD(RECORD_INSTANCE, instance),       FIELD(RECORD_REPLAY_OF, replay_of),
    FIELD(RECORD_RELEASED, released),       FIELD(RECORD_RELEASE_SIGNATURE, release_signature),
    FIELD(RECORD_SPOOLED, spooled),         FIELD(RECORD_SPOOL_SIGNATURE, spool_signature),
    FIELD(RECORD_TRACEPARENT, traceparent), FIELD(RECORD_TRACESTATE, tracestate),
};

void
record_add_header(struct record *record, const char *name, struct span value)
{
        size_t len = strlen(name);

        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                if (len == fields[i].len && memcmp(name, fields[i].name, len) == 0) {
                        memcpy((char *)record + fields[i].offset, &value, sizeof(value));
                        return;
                }
        }
}

int64_t
record_signed_s(const struct record *record)
{
        const struct span digits = record->timestamp;
        int64_t seconds = 0;

        if (digits.len != SIGNED_DIGITS)
                return -1;
        for (size_t i = 0; i < digits.len; i++) {
                if (digits.data[i] < '0' || digits.data[i] > '9')
                        return -1;
                seconds = seconds * 10 + (digits.data[i] - '0');
        }
        return seconds;
}
