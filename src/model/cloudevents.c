#include "model/cloudevents.h"

#include <stdio.h>
#include <string.h>

static void
add(struct cloudevents *event, const char *name, struct span value)
{
        if (value.data == NULL)
                return;
        event->headers[event->n].name = name;
        event->headers[event->n].value = value;
        event->n++;
}

static struct span
text_span(const char *text)
{
        return (struct span){text, strlen(text)};
}

/* The signed timestamp as RFC 3339. Empty when a foreign record has something else there. */
static void
format_time(const struct record *record, char time[CLOCK_RFC3339_SIZE])
{
        int64_t signed_s = record_signed_s(record);

        time[0] = '\0';
        if (signed_s >= 0)
                (void)clock_format_s(signed_s, time);
}

static struct span
event_id(const struct record *record, struct cloudevents *event)
{
        const struct span key = record->key, released = record->released;

        if (released.len == 0 || key.len + 1 + released.len > sizeof(event->id))
                return key;
        memcpy(event->id, key.data, key.len);
        event->id[key.len] = '.';
        memcpy(event->id + key.len + 1, released.data, released.len);
        return (struct span){event->id, key.len + 1 + released.len};
}

void
cloudevents_describe(const struct record *record, const struct verdict *verdict, struct cloudevents *event)
{
        event->n = 0;
        (void)snprintf(event->source, sizeof(event->source), "/%s", verdict->rules->source);
        format_time(record, event->time);

        add(event, "content-type", text_span("application/json"));
        add(event, "ce_specversion", text_span("1.0"));
        add(event, "ce_id", event_id(record, event));
        add(event, "ce_type", verdict->kind);
        add(event, "ce_source", text_span(event->source));
        if (event->time[0] != '\0')
                add(event, "ce_time", text_span(event->time));
        add(event, "ce_webhookid", record->webhook_id);
        add(event, "ce_subject", verdict->subject);
        add(event, RECORD_TRACEPARENT, record->traceparent);
        add(event, RECORD_TRACESTATE, record->tracestate);
}
