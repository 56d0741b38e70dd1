#include "router/decision_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct decision_log_source *
find_source(struct decision_log *log, const char *name)
{
        struct decision_log_source *source = log->sources;

        while (source != NULL && strcmp(source->name, name) != 0)
                source = source->next;
        if (source != NULL)
                return source;
        source = mem_alloc(sizeof(*source));
        source->name = mem_strdup(name);
        source->next = log->sources;
        log->sources = source;
        return source;
}

static const char *
action_name(enum verdict_action action)
{
        switch (action) {
        case VERDICT_PUBLISH:
                return "publish";
        case VERDICT_QUARANTINE:
                return "quarantine";
        case VERDICT_DROP:
                return "drop";
        case VERDICT_TEST:
                return "test";
        }
        return "none";
}

/* Buffers for the quoted values of a record. */
struct values {
        char source[LOG_QUOTED_SIZE];
        char delivery_id[LOG_QUOTED_SIZE];
        char request_id[LOG_QUOTED_SIZE];
        char detail[LOG_QUOTED_SIZE];
};

static const char *
value(struct span span, char text[LOG_QUOTED_SIZE])
{
        return log_value(span.data, span.len, text);
}

static void
log_each(const struct record *record, const struct verdict *verdict, struct values *values)
{
        log_debug("decided action=%s reason=%s topic=%s partition=%" PRId32 " offset=%" PRId64
                  " source=%s delivery_id=%s request_id=%s",
                  action_name(verdict->action),
                  verdict->action == VERDICT_QUARANTINE ? judge_reason_name(verdict->reason) : "-",
                  verdict->action == VERDICT_PUBLISH ? verdict->topic->topic : "-", record->partition,
                  record->offset, value(record->source, values->source),
                  value(record->key, values->delivery_id), value(record->request_id, values->request_id));
}

/* A record that is decided again, after an abort, has the same partition and offset. */
static void
note_recent(struct decision_log *log, const char *known, const struct record *record,
            const struct verdict *verdict)
{
        struct recent_event event = {
            .outcome = judge_reason_name(verdict->reason),
            .partition = record->partition,
            .offset = record->offset,
        };
        size_t len =
            record->key.len < sizeof(event.delivery_id) ? record->key.len : sizeof(event.delivery_id) - 1;

        (void)snprintf(event.source, sizeof(event.source), "%s", known);
        (void)snprintf(event.detail, sizeof(event.detail), "%s", verdict->detail);
        if (len > 0)
                memcpy(event.delivery_id, record->key.data, len);
        recent_note(log->recent, &event);
}

void
decision_log_add(struct decision_log *log, const char *known, const struct record *record,
                 const struct verdict *verdict)
{
        struct decision_log_source *source;
        struct values values;

        if (log_is_on(LOG_LEVEL_DEBUG))
                log_each(record, verdict, &values);
        if (verdict->action != VERDICT_QUARANTINE)
                return;
        note_recent(log, known, record, verdict);
        if (!log_is_on(LOG_LEVEL_NOTICE))
                return;
        source = find_source(log, known);
        log_flood(&source->quarantined[verdict->reason], LOG_LEVEL_NOTICE,
                  "quarantined reason=%s source=%s partition=%" PRId32 " offset=%" PRId64
                  " delivery_id=%s request_id=%s detail=%s",
                  judge_reason_name(verdict->reason), value(record->source, values.source), record->partition,
                  record->offset, value(record->key, values.delivery_id),
                  value(record->request_id, values.request_id), log_quote(verdict->detail, values.detail));
}

void
decision_log_strange(struct decision_log *log, const struct record *record)
{
        char source[LOG_QUOTED_SIZE];

        log_flood(
            &log->strange, LOG_LEVEL_WARNING,
            "deliveries within dedup_window have a source that is not configured; if it has another name "
            "now, repeats of them are published again source=%s",
            value(record->source, source));
}

void
decision_log_clear(struct decision_log *log)
{
        struct decision_log_source *source;

        log_flood_end(&log->strange);
        while ((source = log->sources) != NULL) {
                log->sources = source->next;
                for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                        log_flood_end(&source->quarantined[r]);
                free(source->name);
                free(source);
        }
}
