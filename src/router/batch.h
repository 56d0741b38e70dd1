#ifndef ROUTER_BATCH_H
#define ROUTER_BATCH_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/transaction.h"
#include "metrics/metrics.h"
#include "model/judge.h"

/* When the deliveries of the batch's events were received: how long they took is known after the commit. */
struct batch_receptions {
        struct batch_receptions_run {
                int64_t received_ms; /* since the epoch, by the receiver's clock */
                uint64_t n;          /* consecutive events */
        } * runs;
        size_t n;
        size_t size;
};

/* The decisions of one transaction, counted so that the metrics include them only once they are committed. */
struct batch {
        size_t n_records;
        size_t max_records; /* at most max_batch; see batch_shrink() and batch_adapt() */
        size_t n_bytes;
        int64_t started_ms;                  /* monotonic */
        struct metrics_decisions *decisions; /* for each source, and one for records of no source */
        size_t n_sources;
        uint64_t n_tests;
        size_t n_rules;
        struct batch_receptions receptions;
};

void batch_init(struct batch *batch, const struct config *config);
void batch_free(struct batch *batch);

/* Use another configuration from now on. Only while the batch is empty. */
void batch_reload(struct batch *batch, const struct config *config);

void batch_reset(struct batch *batch);

/* Halve the size of the next batch after a failed transaction. */
void batch_shrink(struct batch *batch);

/*
 * Adapt the size of the next batch after a commit to how long the slowest record took to reach Kafka: double
 * it, up to max_batch, after a full batch with less than 4 s, and halve it with 8 s, since each record must
 * be there within its timeout of 15 s. The time of a small batch does not depend on its size: double it.
 */
void batch_adapt(struct batch *batch, const struct config *config, int64_t slowest_ms);

/* Whether it has reached max_records, max_batch_bytes or an age of one second. */
int batch_is_full(const struct batch *batch, const struct config *config);

/**
 * batch_add(batch, config, transaction, record, message, verdict, error):
 * Carry out a verdict within the transaction: produce the event, or the quarantined record with the headers
 * of message, or nothing. May take the headers out of message, to which spans of record then no longer point.
 * Returns 0, or -1 with the reason.
 */
int batch_add(struct batch *batch, const struct config *config, struct transaction *transaction,
              const struct record *record, rd_kafka_message_t *message, const struct verdict *verdict,
              struct error *error) MUST_CHECK;

/* The transaction has committed: add its decisions to the metrics. */
void batch_count(const struct batch *batch, const struct config *config, struct metrics *metrics);

#endif
