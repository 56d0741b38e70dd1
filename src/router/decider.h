#ifndef ROUTER_DECIDER_H
#define ROUTER_DECIDER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/current.h"
#include "kafka/transaction.h"
#include "metrics/metrics.h"
#include "model/judge.h"
#include "router/batch.h"
#include "router/decision_log.h"
#include "router/partition.h"

/*
 * Decides records within one transaction, and commits it together with the offsets of the next records. When
 * a transaction fails, the caller calls decider_abandon() and asks for all positions again.
 */
struct decider {
        struct current *current;
        const struct config *config; /* the first */
        const struct config *newest; /* held: decides rules, topics and limits */
        const char *bootstrap;
        struct metrics *metrics;
        struct judge *judge; /* lives as long as the dedup tables, whose digests depend on its key */
        const struct event_rules **rules; /* of the sources */
        struct transaction *transaction;  /* NULL: none yet */
        /*
         * The membership under which the positions were found: under a later one, partitions could belong to
         * another router.
         */
        rd_kafka_consumer_group_metadata_t *group;
        int64_t made_ms; /* monotonic: when the transaction was created */
        int is_ready;    /* the transaction has fenced its predecessors */
        int is_open;     /* decisions are not committed yet */
        int is_scanning; /* a partition is being scanned for gaps */
        int is_behind;   /* the last batch was full: more records wait */
        struct partition_list partitions;
        struct batch batch;
        struct decision_log decisions;
        /* Number of records of the open transaction that Kafka has refused for good, and an example. */
        size_t n_refused;
        struct batch_origin refused;
        struct error refused_why;
};

/* Returns 0, or -1 with the reason; call decider_close() in either case. */
int decider_open(struct decider *decider, struct current *current, const char *bootstrap,
                 struct metrics *metrics, struct error *error) MUST_CHECK;
void decider_close(struct decider *decider);

/*
 * Whether records are still decided by an earlier configuration. Each batch is decided by one configuration:
 * commit the open batch, then call decider_reload(), before the next record.
 */
int decider_is_outdated(const struct decider *decider);

/* Apply the newest configuration, if no batch is open. */
void decider_reload(struct decider *decider);

/*
 * Create and initialize the transactional producer. Returns 0 when it is ready, 1 to try again, -1 with the
 * reason when decider_abandon() must come first.
 */
int decider_prepare(struct decider *decider, struct error *error) MUST_CHECK;

/* Note the group membership under which positions are found from now on; commits depend on it. */
void decider_note_membership(struct decider *decider, rd_kafka_t *consumer);

enum decider_result {
        DECIDER_DONE,     /* or ignored */
        DECIDER_UNPLACED, /* not processed: ask for the partition's position again */
        DECIDER_FAILED,   /* call decider_abandon() */
};

/**
 * decider_take(decider, message, origin, error):
 * Remember or decide a record, depending on its offset. Ignore records of partitions without a position. On
 * DECIDER_FAILED, error has the reason.
 */
enum decider_result decider_take(struct decider *decider, const rd_kafka_message_t *message,
                                 const struct consumer_origin *origin, struct error *error) MUST_CHECK;

/* A partition has been read up to its end, the given offset. */
void decider_note_end(struct decider *decider, int32_t id, int64_t end);

/* Whether the open batch has reached its limits. */
int decider_is_full(const struct decider *decider);

/* Commit the open batch. Returns 0; or -1 with the reason, and the outcome may be unknown. */
int decider_commit(struct decider *decider, struct error *error) MUST_CHECK;

/* Whether no commit can succeed because the brokers are too old. */
int decider_is_unfenced(const struct decider *decider);

/*
 * Discard the open batch and the producer; the next producer aborts its transaction. The dedup tables stay;
 * all positions must be asked for again.
 */
void decider_abandon(struct decider *decider);

#endif
