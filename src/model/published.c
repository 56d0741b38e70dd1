#include "model/published.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void
add_header(struct published *published, const char *name, struct span value)
{
        published->quarantine[published->n_headers++] = (struct record_header){name, value};
}

static void
add_text(struct published *published, const char *name, const char *text)
{
        add_header(published, name, (struct span){text, strlen(text)});
}

/* Keep a header of the delivery in its stub, if it has one. */
static void
keep_header(struct published *published, const char *name, struct span value)
{
        if (value.data == NULL)
                return;
        if (value.len > PUBLISHED_STUB_TEXT_MAX)
                value.len = PUBLISHED_STUB_TEXT_MAX;
        add_header(published, name, value);
}

static void
describe_event(const struct record *record, const struct verdict *verdict, struct published *published)
{
        cloudevents_describe(record, verdict, &published->event);
        published->topic = verdict->topic->topic;
        published->key = verdict->key;
        published->keeps_headers = 0;
        published->headers = published->event.headers;
        published->n_headers = published->event.n;
}

/* Replace the delivery by a stub of it. */
static void
describe_stub(const struct record *record, struct published *published)
{
        published->keeps_headers = 0;
        published->value = (struct span){NULL, 0};
        if (record->key.len > PUBLISHED_STUB_TEXT_MAX)
                published->key = (struct span){NULL, 0};
        keep_header(published, RECORD_SOURCE, record->source);
        keep_header(published, RECORD_WEBHOOK_ID, record->webhook_id);
        keep_header(published, RECORD_TIMESTAMP, record->timestamp);
        keep_header(published, RECORD_SIGNATURE, record->signature);
        keep_header(published, RECORD_RECEIVED, record->received);
        keep_header(published, RECORD_REQUEST_ID, record->request_id);
        keep_header(published, RECORD_INSTANCE, record->instance);
        keep_header(published, RECORD_REPLAY_OF, record->replay_of);
        keep_header(published, RECORD_RELEASED, record->released);
}

/* The record as it was or its stub, and why it is there. */
static void
describe_quarantined(const struct record *record, const struct verdict *verdict, const char *topic,
                     struct published *published)
{
        (void)snprintf(published->partition, sizeof(published->partition), "%" PRId32, record->partition);
        (void)snprintf(published->offset, sizeof(published->offset), "%" PRId64, record->offset);
        published->topic = topic;
        published->key = record->key;
        published->keeps_headers = 1;
        published->headers = published->quarantine;
        published->n_headers = 0;
        if (verdict->reason == QUARANTINE_UNPUBLISHABLE)
                describe_stub(record, published);
        add_text(published, RECORD_REASON, judge_reason_name(verdict->reason));
        add_text(published, RECORD_DETAIL, verdict->detail);
        add_text(published, RECORD_PARTITION, published->partition);
        add_text(published, RECORD_OFFSET, published->offset);
}

int
published_describe(const struct record *record, const struct verdict *verdict, const char *quarantine_topic,
                   struct published *published)
{
        published->value = record->body;
        switch (verdict->action) {
        case VERDICT_PUBLISH:
                describe_event(record, verdict, published);
                return 1;
        case VERDICT_QUARANTINE:
                describe_quarantined(record, verdict, quarantine_topic, published);
                return 1;
        case VERDICT_DROP:
                break;
        }
        return 0;
}
