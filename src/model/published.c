#include "model/published.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct record_header
header(const char *name, const char *text)
{
        return (struct record_header){name, {text, strlen(text)}};
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

/* The record as it was, and why it is there. */
static void
describe_quarantined(const struct record *record, const struct verdict *verdict, const char *topic,
                     struct published *published)
{
        (void)snprintf(published->partition, sizeof(published->partition), "%" PRId32, record->partition);
        (void)snprintf(published->offset, sizeof(published->offset), "%" PRId64, record->offset);
        published->quarantine[0] = header(RECORD_REASON, judge_reason_name(verdict->reason));
        published->quarantine[1] = header(RECORD_DETAIL, verdict->detail);
        published->quarantine[2] = header(RECORD_PARTITION, published->partition);
        published->quarantine[3] = header(RECORD_OFFSET, published->offset);
        published->topic = topic;
        published->key = record->key;
        published->keeps_headers = 1;
        published->headers = published->quarantine;
        published->n_headers = PUBLISHED_QUARANTINE_HEADERS;
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
