#ifndef ROUTER_DECIDER_H
#define ROUTER_DECIDER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/current.h"
#include "kafka/transaction.h"
#include "model/judge.h"
#include "ops/metrics.h"
#include "router/batch.h"
#include "router/decision_log.h"
#include "router/partition.h"

/*
 * What a router does between two commits: it decides records, within one transaction, and commits that with the offsets
 * of the records that follow. When a transaction fails, the caller calls decider_abandon() and asks for all positions again.
 */
struct decider {
        struct current *current;
        const struct config *config; /* the first */
        const struct config *newest; /* held: that of the rules, topics and limits */
        const char *bootstrap;
        struct metrics *metrics;
        struct judge *judge; /* lives as long as the tables, which hold digests made with its key */
        const struct event_rules **rules; /* of the sources */
        struct transaction *transaction;  /* NULL: to be made */
        /* The membership under which the position was taken: with a later one, partitions could be another's already. */
        rd_kafka_consumer_group_metadata_t *group;
        int64_t made_ms; /* monotonic: when the transaction was made */
        int is_ready;    /* it has fenced its predecessors */
        int is_open;     /* something is decided and not committed */
        int is_scanning; /* some partition's gaps are being looked at */
        int is_behind;   /* what was committed last had come to its limits: more waits */
        struct partition_list partitions;
        struct batch batch;
        struct decision_log decisions;
        /* Records of the open transaction that Kafka has refused for good, and one of them. */
        size_t n_refused;
        struct batch_origin refused;
        struct error refused_why;
};

/* Returns 0, or -1 with the reason; release it with decider_close() in either case. */
int decider_open(struct decider *decider, struct current *current, const char *bootstrap,
                 struct metrics *metrics, struct error *error) MUST_CHECK;
void decider_close(struct decider *decider);

/*
 * Whether records are still decided by an earlier configuration. Each batch is decided by one: commit what is open, then call
 * decider_reload(), before the next record is decided.
 */
int decider_is_outdated(const struct decider *decider);

/* Take the newest configuration, if nothing is open. */
void decider_reload(struct decider *decider);

/* Make what deciding needs. Returns 0 when it is there, 1 to try again, -1 with the reason to give up first. */
int decider_prepare(struct decider *decider, struct error *error) MUST_CHECK;

/* Note the membership under which positions are taken from now on, for the commits that depend on them. */
void decider_note_membership(struct decider *decider, rd_kafka_t *consumer);

enum decider_result {
        DECIDER_TAKEN,    /* or passed over */
        DECIDER_UNPLACED, /* not taken: the partition's position is to be asked for again */
        DECIDER_FAILED,   /* give up */
};

/**
 * decider_take(decider, message, origin, error):
 * Remember or decide a record, by its offset. Records of partitions without a position are passed over. On DECIDER_FAILED error
 * has the reason.
 */
enum decider_result decider_take(struct decider *decider, const rd_kafka_message_t *message,
                                 const struct consumer_origin *origin, struct error *error) MUST_CHECK;

/* A partition has been read up to its end, an offset. */
void decider_note_end(struct decider *decider, int32_t id, int64_t end);

/* Whether what is open has come to its limits. */
int decider_is_full(const struct decider *decider);

/* Commit what is open. Returns 0, or -1 with the reason; then the outcome may be unknown. */
int decider_commit(struct decider *decider, struct error *error) MUST_CHECK;

/* Whether no commit can succeed, since the brokers are too old. */
int decider_is_unfenced(const struct decider *decider);

/*
 * What is open will be aborted by the next producer, and this one is never used again. The partitions' tables stay; all
 * their positions are to be asked for again.
 */
void decider_abandon(struct decider *decider);

#endif
