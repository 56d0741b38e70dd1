#include "router/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/output.h"

#define MAX_AGE_MS 1000           /* a batch is committed after this time, even if records keep coming */
#define FIRST_RECORDS 1000        /* in the first batch; how fast Kafka is, is not known yet */
#define SMALL_BYTES (1024 * 1024) /* of a batch that takes no longer than a smaller one */
#define RECORD_BYTES 500          /* of key, headers and framing, about */
#define QUICK_MS 4000
#define SLOW_MS 8000
#define RECEPTIONS_SIZE 64

static int
receptions_grow(struct batch_receptions *receptions)
{
        size_t size = receptions->size == 0 ? RECEPTIONS_SIZE : 2 * receptions->size;
        struct batch_receptions_run *runs = reallocarray(receptions->runs, size, sizeof(*runs));

        if (runs == NULL)
                return -1;
        receptions->runs = runs;
        receptions->size = size;
        return 0;
}

/*
 * Add the reception of an event's delivery. Ignore records that do not say it, which no receiver wrote, and
 * released and spooled ones, which have spent most of the time in quarantine or on a receiver's disk. Returns
 * 0, or -1 when memory fails.
 */
static int
receptions_add(struct batch_receptions *receptions, const struct record *record)
{
        int64_t received_ms;

        if (record->released.len > 0 || record->spooled.len > 0 ||
            clock_parse_ms(record->received.data, record->received.len, &received_ms) != 0)
                return 0;
        if (receptions->n > 0 && receptions->runs[receptions->n - 1].received_ms == received_ms) {
                receptions->runs[receptions->n - 1].n++;
                return 0;
        }
        if (receptions->n == receptions->size && receptions_grow(receptions) != 0)
                return -1;
        receptions->runs[receptions->n++] = (struct batch_receptions_run){received_ms, 1};
        return 0;
}

/*
 * Observe how long the deliveries took until their commit (since the epoch). The receiver's clock may be
 * ahead of this one: then it took no time.
 */
static void
receptions_observe(const struct batch_receptions *receptions, int64_t now_ms, struct metrics *metrics)
{
        for (size_t i = 0; i < receptions->n; i++) {
                int64_t took_ms = now_ms - receptions->runs[i].received_ms;

                metrics_observe(metrics, HISTOGRAM_DELIVERY, took_ms > 0 ? (uint64_t)took_ms : 0,
                                receptions->runs[i].n);
        }
}

void
batch_init(struct batch *batch, const struct config *config)
{
        memset(batch, 0, sizeof(*batch));
        batch->max_records = FIRST_RECORDS;
        batch_reload(batch, config);
}

static void
free_decisions(struct batch *batch)
{
        for (size_t s = 0; batch->decisions != NULL && s <= batch->n_sources; s++)
                free(batch->decisions[s].events);
        free(batch->decisions);
}

void
batch_reload(struct batch *batch, const struct config *config)
{
        free_decisions(batch);
        batch->n_sources = config->n_sources;
        batch->n_rules = topic_table_size(config->topics);
        batch->decisions = mem_alloc((config->n_sources + 1) * sizeof(*batch->decisions));
        for (size_t s = 0; s <= config->n_sources; s++)
                batch->decisions[s].events = mem_alloc((batch->n_rules + 1) * sizeof(uint64_t));
}

void
batch_free(struct batch *batch)
{
        free_decisions(batch);
        free(batch->receptions.runs);
}

static void
reset_decisions(struct metrics_decisions *decisions, size_t n_rules)
{
        memset(decisions->events, 0, n_rules * sizeof(*decisions->events));
        *decisions = (struct metrics_decisions){.events = decisions->events};
}

void
batch_reset(struct batch *batch)
{
        batch->n_records = 0;
        batch->n_bytes = 0;
        for (size_t s = 0; s <= batch->n_sources; s++)
                reset_decisions(&batch->decisions[s], batch->n_rules);
        batch->receptions.n = 0;
        batch->n_tests = 0;
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
batch_adapt(struct batch *batch, const struct config *config, int64_t slowest_ms)
{
        int is_small = batch->n_bytes + batch->n_records * RECORD_BYTES < SMALL_BYTES;

        if (!is_small && slowest_ms >= SLOW_MS)
                batch_shrink(batch);
        else if ((is_small || slowest_ms < QUICK_MS) && batch->n_records >= batch->max_records)
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
make_headers(const struct output *published, rd_kafka_message_t *message)
{
        rd_kafka_headers_t *headers;

        if (!published->keeps_headers ||
            rd_kafka_message_detach_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
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

/* Produce the record that the verdict asks for, if any. */
static int
publish(const struct config *config, struct transaction *transaction, const struct record *record,
        rd_kafka_message_t *message, const struct verdict *verdict, struct error *error)
{
        const struct message_origin origin = {record->partition, record->offset, record->timestamp_ms};
        struct output published;
        rd_kafka_headers_t *headers;

        if (!output_describe(record, verdict, config->quarantine_topic, &published))
                return 0;
        headers = make_headers(&published, message);
        if (headers == NULL)
                return error_set(error, "out of memory");
        if (transaction_produce(transaction, published.topic, published.key, published.value, headers,
                                &origin, error) != 0)
                return error_prefix(error, "topic %s", published.topic);
        return 0;
}

/* Return the counts for the source that the rules belong to; NULL: the source is not configured. */
static struct metrics_decisions *
decisions_of(struct batch *batch, const struct config *config, const struct event_rules *rules)
{
        size_t s = 0;

        while (s < batch->n_sources && &config->sources[s].rules != rules)
                s++;
        return &batch->decisions[s];
}

/* Count what the pointers of the source have found in the body of an event. */
static void
count_lookups(struct metrics_decisions *decisions, const struct record *record, const struct verdict *verdict)
{
        const struct event_rules *rules = verdict->rules;

        if (rules->key_from == EVENT_KEY_POINTER && verdict->key.data != record->key.data)
                decisions->found[EVENT_LOOKUP_KEY]++;
        else if (rules->key_from == EVENT_KEY_POINTER)
                decisions->missing[EVENT_LOOKUP_KEY]++;
        if (rules->subject.n_segments > 0 && verdict->subject.data != NULL)
                decisions->found[EVENT_LOOKUP_SUBJECT]++;
        else if (rules->subject.n_segments > 0)
                decisions->missing[EVENT_LOOKUP_SUBJECT]++;
}

int
batch_add(struct batch *batch, const struct config *config, struct transaction *transaction,
          const struct record *record, rd_kafka_message_t *message, const struct verdict *verdict,
          struct error *error)
{
        struct metrics_decisions *decisions = decisions_of(batch, config, verdict->rules);

        if (batch->n_records == 0)
                batch->started_ms = clock_monotonic_ms();
        batch->n_records++;
        batch->n_bytes += record->body.len;
        if (verdict->action == VERDICT_PUBLISH && receptions_add(&batch->receptions, record) != 0)
                return error_set(error, "out of memory");
        if (verdict->action == VERDICT_DROP)
                decisions->duplicates++;
        else if (verdict->action == VERDICT_TEST)
                batch->n_tests++;
        else if (verdict->action == VERDICT_QUARANTINE)
                decisions->quarantined[verdict->reason]++;
        else {
                decisions->events[verdict->topic->index]++;
                count_lookups(decisions, record, verdict);
        }
        return publish(config, transaction, record, message, verdict, error);
}

void
batch_count(const struct batch *batch, const struct config *config, struct metrics *metrics)
{
        for (size_t s = 0; s <= batch->n_sources; s++)
                metrics_count_decisions(metrics, s < batch->n_sources ? config->sources[s].name : "",
                                        config->topics, &batch->decisions[s]);
        metrics_count(metrics, METRICS_TESTS, batch->n_tests);
        metrics_count(metrics, METRICS_COMMITTED, 1);
        metrics_observe(metrics, HISTOGRAM_BATCH_RECORDS, batch->n_records, 1);
        receptions_observe(&batch->receptions, clock_now_ms(), metrics);
}
