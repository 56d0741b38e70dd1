#ifndef ROUTER_BATCH_H
#define ROUTER_BATCH_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/transaction.h"
#include "model/judge.h"
#include "ops/metrics.h"
#include "router/event_ages.h"

/*
 * What is decided between two commits: the records of one transaction, counted so that the metrics tell what was
 * committed and nothing else.
 */
struct batch_origin {
        int32_t partition; /* of `deliveries` */
        int64_t offset;
        int64_t timestamp_ms;
};

struct batch {
        size_t n_records;
        size_t
            max_records; /* fewer than max_batch after a transaction has failed; grows again as others succeed */
        struct batch_origin *origins; /* of the records that were produced, n_produced of them */
        size_t n_produced;
        size_t origins_size;
        size_t n_bytes;
        int64_t started_ms; /* monotonic */
        uint64_t *n_events; /* for each rule of the topic table */
        uint64_t n_duplicates;
        uint64_t n_quarantined[QUARANTINE_N_REASONS];
        size_t n_rules;
        struct event_ages ages; /* of the events */
};

void batch_init(struct batch *batch, const struct config *config);
void batch_free(struct batch *batch);

/* Decided is by another configuration from now on. Only while nothing is in it. */
void batch_renew(struct batch *batch, const struct config *config);

void batch_reset(struct batch *batch);

/* Its transaction has failed: let the next one have half as many records. Or it was committed: twice as many. */
void batch_shrink(struct batch *batch);
void batch_grow(struct batch *batch, const struct config *config);

/* Whether it has reached max_records, max_batch_bytes or a second's age. */
int batch_is_full(const struct batch *batch, const struct config *config);

/* The record that was produced with a tag. */
const struct batch_origin *batch_origin(const struct batch *batch, uintptr_t tag);

/**
 * batch_add(batch, config, transaction, record, message, verdict, error):
 * Do what the verdict says within the transaction: produce the event, or the quarantined record with the headers of
 * message, or nothing. The tag of what is produced is for batch_origin(). Returns 0 or -1 with the reason.
 */
int batch_add(struct batch *batch, const struct config *config, struct transaction *transaction,
              const struct record *record, const rd_kafka_message_t *message, const struct verdict *verdict,
              struct error *error) MUST_CHECK;

/* The transaction has committed: count what was in it. */
void batch_count(const struct batch *batch, const struct config *config, struct metrics *metrics);

#endif
