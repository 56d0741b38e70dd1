#ifndef ROUTER_BATCH_H
#define ROUTER_BATCH_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/transaction.h"
#include "metrics/metrics.h"
#include "model/judge.h"

/* The record of `deliveries` that a produced record comes from. */
struct batch_origin {
        int32_t partition;
        int64_t offset;
        int64_t timestamp_ms;
};

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
        size_t
            max_records; /* below max_batch after a transaction has failed; grows again as others succeed */
        struct batch_origin *origins; /* of the n_produced records that were produced */
        size_t n_produced;
        size_t origins_size;
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

/* Halve the size of the next batch after a failed transaction; double it after a commit, up to max_batch. */
void batch_shrink(struct batch *batch);
void batch_grow(struct batch *batch, const struct config *config);

/* Whether it has reached max_records, max_batch_bytes or an age of one second. */
int batch_is_full(const struct batch *batch, const struct config *config);

/* Return the origin of the record that was produced with a tag, or NULL. */
const struct batch_origin *batch_origin(const struct batch *batch, uintptr_t tag);

/**
 * batch_add(batch, config, transaction, record, message, verdict, error):
 * Carry out a verdict within the transaction: produce the event, or the quarantined record with the headers
 * of message, or nothing. The tag of the produced record is for batch_origin(). Returns 0, or -1 with the
 * reason.
 */
int batch_add(struct batch *batch, const struct config *config, struct transaction *transaction,
              const struct record *record, const rd_kafka_message_t *message, const struct verdict *verdict,
              struct error *error) MUST_CHECK;

/* The transaction has committed: add its decisions to the metrics. */
void batch_count(const struct batch *batch, const struct config *config, struct metrics *metrics);

#endif
