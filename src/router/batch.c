#include "router/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/output.h"

#define MAX_AGE_MS 1000 /* a batch is committed after this time, even if records keep coming */
#define AGES_SIZE 64

static int
ages_grow(struct batch_ages *ages)
{
        size_t size = ages->size == 0 ? AGES_SIZE : 2 * ages->size;
        struct batch_ages_run *runs = reallocarray(ages->runs, size, sizeof(*runs));

        if (runs == NULL)
                return -1;
        ages->runs = runs;
        ages->size = size;
        return 0;
}

/* Add an event; -1 means an unknown time, which is ignored. Returns 0, or -1 when memory fails. */
static int
ages_add(struct batch_ages *ages, int64_t signed_s)
{
        if (signed_s < 0)
                return 0;
        if (ages->n > 0 && ages->runs[ages->n - 1].signed_s == signed_s) {
                ages->runs[ages->n - 1].n++;
                return 0;
        }
        if (ages->n == ages->size && ages_grow(ages) != 0)
                return -1;
        ages->runs[ages->n++] = (struct batch_ages_run){signed_s, 1};
        return 0;
}

/*
 * Observe the events' ages at the time of their commit (since the epoch). A time in the future counts as age
 * 0.
 */
static void
ages_observe(const struct batch_ages *ages, int64_t now_ms, struct metrics *metrics)
{
        for (size_t i = 0; i < ages->n; i++) {
                int64_t age_ms = now_ms - ages->runs[i].signed_s * 1000;

                metrics_observe(metrics, HISTOGRAM_EVENT_AGE, age_ms > 0 ? (uint64_t)age_ms : 0,
                                ages->runs[i].n);
        }
}

void
batch_init(struct batch *batch, const struct config *config)
{
        memset(batch, 0, sizeof(*batch));
        batch->max_records = config->max_batch;
        batch_reload(batch, config);
}

void
batch_reload(struct batch *batch, const struct config *config)
{
        free(batch->n_events);
        batch->n_rules = topic_table_size(config->topics);
        batch->n_events = mem_alloc(batch->n_rules * sizeof(uint64_t));
}

void
batch_free(struct batch *batch)
{
        free(batch->n_events);
        free(batch->origins);
        free(batch->ages.runs);
}

void
batch_reset(struct batch *batch)
{
        batch->n_records = 0;
        batch->n_produced = 0;
        batch->n_bytes = 0;
        batch->n_duplicates = 0;
        batch->n_tests = 0;
        memset(batch->n_events, 0, batch->n_rules * sizeof(uint64_t));
        memset(batch->n_quarantined, 0, sizeof(batch->n_quarantined));
        batch->ages.n = 0;
}

void
batch_shrink(struct batch *batch)
{
        if (batch->n_records > 1)
                batch->max_records = batch->n_records / 2;
        else
                batch->max_records = 1;
}

void
batch_grow(struct batch *batch, const struct config *config)
{
        batch->max_records =
            batch->max_records < config->max_batch / 2 ? batch->max_records * 2 : config->max_batch;
}

int
batch_is_full(const struct batch *batch, const struct config *config)
{
        return batch->n_records >= batch->max_records || batch->n_records >= config->max_batch ||
               batch->n_bytes >= config->max_batch_bytes ||
               clock_monotonic_ms() - batch->started_ms >= MAX_AGE_MS;
}

/*
 * Return the headers of a published record: the delivery's own if they are kept, and further ones. NULL: no
 * memory.
 */
static rd_kafka_headers_t *
make_headers(const struct output *published, const rd_kafka_message_t *message)
{
        rd_kafka_headers_t *original, *headers;

        if (published->keeps_headers &&
            rd_kafka_message_headers(message, &original) == RD_KAFKA_RESP_ERR_NO_ERROR)
                headers = rd_kafka_headers_copy(original);
        else
                headers = rd_kafka_headers_new(published->n_headers);
        for (size_t i = 0; i < published->n_headers; i++) {
                const struct record_header *header = &published->headers[i];

                if (rd_kafka_header_add(headers, header->name, -1, header->value.data,
                                        (ssize_t)header->value.len) != RD_KAFKA_RESP_ERR_NO_ERROR) {
                        rd_kafka_headers_destroy(headers);
                        return NULL;
                }
        }
        return headers;
}

const struct batch_origin *
batch_origin(const struct batch *batch, uintptr_t tag)
{
        return tag >= 1 && tag <= batch->n_produced ? &batch->origins[tag - 1] : NULL;
}

/* Note the origin of a record. Returns its tag, 0 when memory fails. */
static uintptr_t
add_origin(struct batch *batch, const struct record *record)
{
        if (batch->n_produced == batch->origins_size) {
                size_t size = batch->origins_size == 0 ? 256 : 2 * batch->origins_size;
                struct batch_origin *origins = reallocarray(batch->origins, size, sizeof(*origins));

                if (origins == NULL)
                        return 0;
                batch->origins = origins;
                batch->origins_size = size;
        }
        batch->origins[batch->n_produced] =
            (struct batch_origin){record->partition, record->offset, record->timestamp_ms};
        return ++batch->n_produced;
}

/* Produce the record that the verdict asks for, if any. */
static int
publish(struct batch *batch, const struct config *config, struct transaction *transaction,
        const struct record *record, const rd_kafka_message_t *message, const struct verdict *verdict,
        struct error *error)
{
        struct output published;
        rd_kafka_headers_t *headers;
        uintptr_t tag;

        if (!output_describe(record, verdict, config->quarantine_topic, &published))
                return 0;
        tag = add_origin(batch, record);
        headers = tag == 0 ? NULL : make_headers(&published, message);
        if (headers == NULL)
                return error_set(error, "out of memory");
        if (transaction_produce(transaction, published.topic, published.key, published.value, headers, tag,
                                error) != 0)
                return error_prefix(error, "topic %s", published.topic);
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
        if (verdict->action == VERDICT_PUBLISH && ages_add(&batch->ages, record_signed_s(record)) != 0)
                return error_set(error, "out of memory");
        if (verdict->action == VERDICT_DROP)
                batch->n_duplicates++;
        else if (verdict->action == VERDICT_TEST)
                batch->n_tests++;
        else if (verdict->action == VERDICT_PUBLISH)
                batch->n_events[verdict->topic->index]++;
        else
                batch->n_quarantined[verdict->reason]++;
        return publish(batch, config, transaction, record, message, verdict, error);
}

void
batch_count(const struct batch *batch, const struct config *config, struct metrics *metrics)
{
        for (size_t i = 0; i < batch->n_rules; i++)
                metrics_count_events(metrics, topic_table_rule(config->topics, i), batch->n_events[i]);
        metrics_count_duplicates(metrics, batch->n_duplicates);
        metrics_count_tests(metrics, batch->n_tests);
        for (size_t r = 0; r < QUARANTINE_N_REASONS; r++)
                metrics_count_quarantined(metrics, (enum quarantine_reason)r, batch->n_quarantined[r]);
        metrics_count_transaction(metrics, 1);
        metrics_observe(metrics, HISTOGRAM_BATCH_RECORDS, batch->n_records, 1);
        ages_observe(&batch->ages, clock_now_ms(), metrics);
}
