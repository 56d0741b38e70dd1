#ifndef ROUTER_WORK_H
#define ROUTER_WORK_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/current.h"
#include "kafka/transaction.h"
#include "metrics/metrics.h"
#include "model/judge.h"
#include "router/batch.h"
#include "router/partition.h"
#include "router/trail.h"

/*
 * What a router does between two commits: it decides records, within one transaction, and commits that with the offsets
 * of the records that follow. When a transaction fails, the caller calls work_give_up() and asks for all positions again.
 */
struct work {
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
        struct trail trail;
        /* Records of the open transaction that Kafka has refused for good, and one of them. */
        size_t n_refused;
        struct batch_origin refused;
        struct error refused_why;
};

/* Returns 0, or -1 with the reason; release it with work_close() in either case. */
int work_open(struct work *work, struct current *current, const char *bootstrap, struct metrics *metrics,
              struct error *error) MUST_CHECK;
void work_close(struct work *work);

/*
 * Whether records are still decided by an earlier configuration. Each batch is decided by one: commit what is open, then call
 * work_renew(), before the next record is decided.
 */
int work_is_outdated(const struct work *work);

/* Take the newest configuration, if nothing is open. */
void work_renew(struct work *work);

/* Make what deciding needs. Returns 0 when it is there, 1 to try again, -1 with the reason to give up first. */
int work_prepare(struct work *work, struct error *error) MUST_CHECK;

/* Note the membership under which positions are taken from now on, for the commits that depend on them. */
void work_join(struct work *work, rd_kafka_t *consumer);

enum work_result {
        WORK_TAKEN,    /* or passed over */
        WORK_UNPLACED, /* not taken: the partition's position is to be asked for again */
        WORK_FAILED,   /* give up */
};

/**
 * work_take(work, message, origin, error):
 * Remember or decide a record, by its offset. Records of partitions without a position are passed over. On WORK_FAILED error
 * has the reason.
 */
enum work_result work_take(struct work *work, const rd_kafka_message_t *message,
                           const struct consumer_origin *origin, struct error *error) MUST_CHECK;

/* A partition has been read up to its end, an offset. */
void work_note_end(struct work *work, int32_t id, int64_t end);

/* Whether what is open has come to its limits. */
int work_is_full(const struct work *work);

/* Commit what is open. Returns 0, or -1 with the reason; then the outcome may be unknown. */
int work_commit(struct work *work, struct error *error) MUST_CHECK;

/* Whether no commit can succeed, since the brokers are too old. */
int work_is_unfenced(const struct work *work);

/*
 * What is open will be aborted by the next producer, and this one is never used again. The partitions' tables stay; all
 * their positions are to be asked for again.
 */
void work_give_up(struct work *work);

#endif
