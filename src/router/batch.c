#include "router/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/cloudevents.h"

#define MAX_AGE_MS 1000

void
batch_init(struct batch *batch, const struct config *config)
{
        memset(batch, 0, sizeof(*batch));
        batch->n_rules = topic_table_size(config->topics);
        batch->n_events = mem_alloc(batch->n_rules * sizeof(uint64_t));
}

void
batch_free(struct batch *batch)
{
        free(batch->n_events);
}

void
batch_reset(struct batch *batch)
{
        batch->n_records = 0;
        batch->n_bytes = 0;
        batch->n_duplicates = 0;
        memset(batch->n_events, 0, batch->n_rules * sizeof(uint64_t));
        memset(batch->n_quarantined, 0, sizeof(batch->n_quarantined));
}

int
batch_is_full(const struct batch *batch, const struct config *config)
{
        return batch->n_records >= config->max_batch || batch->n_bytes >= config->max_batch_bytes ||
               clock_monotonic_ms() - batch->started_ms >= MAX_AGE_MS;
}

static int
add_header(rd_kafka_headers_t *headers, const char *name, struct span value)
{
        return rd_kafka_header_add(headers, name, -1, value.data, (ssize_t)value.len) ==
               RD_KAFKA_RESP_ERR_NO_ERROR;
}

static int
add_text(rd_kafka_headers_t *headers, const char *name, const char *text)
{
        return add_header(headers, name, (struct span){text, strlen(text)});
}

static int
add_number(rd_kafka_headers_t *headers, const char *name, int64_t number)
{
        char text[24];

        (void)snprintf(text, sizeof(text), "%" PRId64, number);
        return add_text(headers, name, text);
}

static int
publish(struct transaction *transaction, const struct record *record, const struct verdict *verdict,
        struct error *error)
{
        rd_kafka_headers_t *headers = rd_kafka_headers_new(CLOUDEVENTS_MAX_HEADERS);
        struct cloudevents event;

        cloudevents_describe(record, verdict, &event);
        for (size_t i = 0; i < event.n; i++) {
                if (!add_header(headers, event.headers[i].name, event.headers[i].value)) {
                        rd_kafka_headers_destroy(headers);
                        return error_set(error, "out of memory");
                }
        }
        if (transaction_produce(transaction, verdict->topic->topic, verdict->key, record->body, headers,
                                error) != 0)
                return error_prefix(error, "topic %s", verdict->topic->topic);
        return 0;
}

/* The record as it was, and why it is here. */
static int
quarantine(const struct config *config, struct transaction *transaction, const struct record *record,
           const rd_kafka_message_t *message, const struct verdict *verdict, struct error *error)
{
        rd_kafka_headers_t *original, *headers;

        if (rd_kafka_message_headers(message, &original) == RD_KAFKA_RESP_ERR_NO_ERROR)
                headers = rd_kafka_headers_copy(original);
        else
                headers = rd_kafka_headers_new(4);
        if (!add_text(headers, RECORD_REASON, judge_reason_name(verdict->reason)) ||
            !add_text(headers, RECORD_DETAIL, verdict->detail) ||
            !add_number(headers, RECORD_PARTITION, record->partition) ||
            !add_number(headers, RECORD_OFFSET, record->offset)) {
                rd_kafka_headers_destroy(headers);
                return error_set(error, "out of memory");
        }
        if (transaction_produce(transaction, config->quarantine_topic, record->key, record->body, headers,
                                error) != 0)
                return error_prefix(error, "topic %s", config->quarantine_topic);
        return 0;
}

int
batch_add(struct batch *batch, const struct config *config, struct transaction *transaction,
          const struct record *record, const rd_kafka_message_t *message, const struct verdict *verdict,
          struct error *error)
{
        if (batch->n_records == 0)
                batch->started_ms = clock_monotonic_ms();
        batch->n_records++;
        batch->n_bytes += record->body.len;
        switch (verdict->action) {
        case VERDICT_DROP:
                batch->n_duplicates++;
                return 0;
        case VERDICT_PUBLISH:
                batch->n_events[verdict->topic->index]++;
                return publish(transaction, record, verdict, error);
        case VERDICT_QUARANTINE:
                batch->n_quarantined[verdict->reason]++;
                return quarantine(config, transaction, record, message, verdict, error);
        }
        return 0;
}

void
batch_count(const struct batch *batch, const struct config *config, struct metrics *metrics)
{
        for (size_t i = 0; i < batch->n_rules; i++)
                metrics_count_events(metrics, topic_table_rule(config->topics, i), batch->n_events[i]);
        metrics_count_duplicates(metrics, batch->n_duplicates);
        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                metrics_count_quarantined(metrics, (enum quarantine_reason)r, batch->n_quarantined[r]);
        metrics_count_transaction(metrics, 1);
}
