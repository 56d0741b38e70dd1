#ifndef ROUTER_WORK_H
#define ROUTER_WORK_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/current.h"
#include "kafka/transaction.h"
#include "model/judge.h"
#include "ops/metrics.h"
#include "router/batch.h"
#include "router/partition.h"
#include "router/trail.h"

/*
 * What a router does between two commits: it decides records, within one transaction, and commits that with the offsets
 * it has come to. Any trouble is for the caller to answer by work_give_up() and by going back to the committed offsets.
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
        int is_ready;  /* the transaction has fenced its predecessors */
        int is_open;   /* something is decided and not committed */
        int is_behind; /* what was committed last had come to its limits: more waits */
        struct partition_list partitions;
        struct batch batch;
        struct trail trail;
};

/* Returns 0, or -1 with the reason; release it with work_close() in either case. */
int work_open(struct work *work, struct current *current, const char *bootstrap, struct metrics *metrics,
              struct error *error) MUST_CHECK;
void work_close(struct work *work);

/* Take over the newest configuration, unless something is open: what is in one transaction is decided by one of them. */
void work_renew(struct work *work);

/* Make what deciding needs. Returns 0 when it is there, 1 to try again, -1 with the reason to give up first. */
int work_prepare(struct work *work, struct error *error) MUST_CHECK;

/* Take note of the membership under which positions are taken from now on, for the commits of what they lead to. */
void work_join(struct work *work, rd_kafka_t *consumer);

/**
 * work_take(work, message, error):
 * Remember or decide a record, by where it stands. Records that were fetched before the position was taken are passed
 * over. On a result but WORK_TAKEN error has the reason.
 */
enum work_result {
        WORK_TAKEN,
        WORK_GAP,     /* not taken: records before it are missing; commit what is open and read once more */
        WORK_FAILED,  /* give up */
        WORK_REFUSED, /* this is not the log that was routed before: a person must decide */
};
enum work_result work_take(struct work *work, const rd_kafka_message_t *message,
                           struct error *error) MUST_CHECK;

/* Whether what is open has come to its limits. */
int work_is_full(const struct work *work);

/* Commit what is open. Returns 0, or -1 with the reason; then the outcome may be unknown. */
int work_commit(struct work *work, struct error *error) MUST_CHECK;

/* What is open will be aborted by the next producer, and this one is never used again. The partitions' tables stay. */
void work_give_up(struct work *work);

#endif
