#include "model/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void
add_event_header(struct output_event *event, const char *name, struct span value)
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

/* Write the signed timestamp as RFC 3339, or an empty text if a foreign record has none. */
static void
format_time(const struct record *record, char time[CLOCK_RFC3339_SIZE])
{
        int64_t signed_s = record_signed_s(record);

        time[0] = '\0';
        if (signed_s >= 0)
                (void)clock_format_s(signed_s, time);
}

static struct span
event_id(const struct record *record, struct output_event *event)
{
        const struct span key = record->key, released = record->released;

        if (released.len == 0 || key.len + 1 + released.len > sizeof(event->id))
                return key;
        memcpy(event->id, key.data, key.len);
        event->id[key.len] = '.';
        memcpy(event->id + key.len + 1, released.data, released.len);
        return (struct span){event->id, key.len + 1 + released.len};
}

static struct span
event_type(const struct verdict *verdict, struct output_event *event)
{
        const char *prefix = verdict->rules->ce_type_prefix;
        const struct span kind = verdict->kind;
        size_t len = prefix == NULL ? 0 : strlen(prefix);

        if (len == 0 || len + kind.len > sizeof(event->type))
                return kind;
        memcpy(event->type, prefix, len);
        memcpy(event->type + len, kind.data, kind.len);
        return (struct span){event->type, len + kind.len};
}

/* Return the URI of the schema, or no data if the source has none. */
static struct span
event_schema(const struct verdict *verdict, struct output_event *event)
{
        const char *base = verdict->rules->ce_dataschema_base;
        const char *name = topic_table_documented_name(verdict->kind.data, verdict->kind.len);

        if (base == NULL)
                return (struct span){NULL, 0};
        (void)snprintf(event->schema, sizeof(event->schema), "%s%s.v1.json", base,
                       name == NULL ? "event" : name);
        return text_span(event->schema);
}

void
output_describe_event(const struct record *record, const struct verdict *verdict, struct output_event *event)
{
        event->n = 0;
        format_time(record, event->time);

        add_event_header(event, "content-type", text_span("application/json"));
        add_event_header(event, "ce_specversion", text_span("1.0"));
        add_event_header(event, "ce_id", event_id(record, event));
        add_event_header(event, "ce_type", event_type(verdict, event));
        add_event_header(event, "ce_source", text_span(verdict->rules->ce_source));
        if (event->time[0] != '\0')
                add_event_header(event, "ce_time", text_span(event->time));
        add_event_header(event, "ce_webhookid", record->webhook_id);
        add_event_header(event, "ce_subject", verdict->subject);
        add_event_header(event, "ce_dataschema", event_schema(verdict, event));
        add_event_header(event, RECORD_TRACEPARENT, record->traceparent);
        add_event_header(event, RECORD_TRACESTATE, record->tracestate);
}

static void
add_header(struct output *output, const char *name, struct span value)
{
        output->quarantine[output->n_headers++] = (struct record_header){name, value};
}

static void
add_text(struct output *output, const char *name, const char *text)
{
        add_header(output, name, (struct span){text, strlen(text)});
}

/* Copy a header of the delivery to its stub, if it has it. */
static void
keep_header(struct output *output, const char *name, struct span value)
{
        if (value.data == NULL)
                return;
        if (value.len > OUTPUT_STUB_TEXT_MAX)
                value.len = OUTPUT_STUB_TEXT_MAX;
        add_header(output, name, value);
}

static void
describe_event(const struct record *record, const struct verdict *verdict, struct output *output)
{
        output_describe_event(record, verdict, &output->event);
        output->topic = verdict->topic->topic;
        output->key = verdict->key;
        output->keeps_headers = 0;
        output->headers = output->event.headers;
        output->n_headers = output->event.n;
}

/* Replace the delivery by its stub. */
static void
describe_stub(const struct record *record, struct output *output)
{
        output->keeps_headers = 0;
        output->value = (struct span){NULL, 0};
        if (record->key.len > OUTPUT_STUB_TEXT_MAX)
                output->key = (struct span){NULL, 0};
        keep_header(output, RECORD_SOURCE, record->source);
        keep_header(output, RECORD_WEBHOOK_ID, record->webhook_id);
        keep_header(output, RECORD_TIMESTAMP, record->timestamp);
        keep_header(output, RECORD_SIGNATURE, record->signature);
        keep_header(output, RECORD_RECEIVED, record->received);
        keep_header(output, RECORD_REQUEST_ID, record->request_id);
        keep_header(output, RECORD_INSTANCE, record->instance);
        keep_header(output, RECORD_REPLAY_OF, record->replay_of);
        keep_header(output, RECORD_RELEASED, record->released);
        keep_header(output, RECORD_SPOOLED, record->spooled);
        keep_header(output, RECORD_SPOOL_SIGNATURE, record->spool_signature);
}

/* Describe a quarantined record: the unchanged delivery or its stub, with the reason. */
static void
describe_quarantined(const struct record *record, const struct verdict *verdict, const char *topic,
                     struct output *output)
{
        (void)snprintf(output->partition, sizeof(output->partition), "%" PRId32, record->partition);
        (void)snprintf(output->offset, sizeof(output->offset), "%" PRId64, record->offset);
        output->topic = topic;
        output->key = record->key;
        output->keeps_headers = 1;
        output->headers = output->quarantine;
        output->n_headers = 0;
        if (verdict->reason == QUARANTINE_UNPUBLISHABLE)
                describe_stub(record, output);
        add_text(output, RECORD_REASON, judge_reason_name(verdict->reason));
        add_text(output, RECORD_DETAIL, verdict->detail);
        add_text(output, RECORD_PARTITION, output->partition);
        add_text(output, RECORD_OFFSET, output->offset);
}

int
output_describe(const struct record *record, const struct verdict *verdict, const char *quarantine_topic,
                struct output *output)
{
        output->value = record->body;
        switch (verdict->action) {
        case VERDICT_PUBLISH:
                describe_event(record, verdict, output);
                return 1;
        case VERDICT_QUARANTINE:
                describe_quarantined(record, verdict, quarantine_topic, output);
                return 1;
        case VERDICT_DROP:
        case VERDICT_TEST:
                break;
        }
        return 0;
}
