#ifndef ROUTER_PROCESSOR_H
#define ROUTER_PROCESSOR_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/current.h"
#include "dedup/state.h"
#include "kafka/transaction.h"
#include "metrics/metrics.h"
#include "model/judge.h"
#include "router/batch.h"
#include "router/decision_log.h"
#include "router/partition_list.h"

/*
 * Decides records within one transaction, and commits it together with the offsets of the next records. When
 * a transaction fails, the caller calls processor_abandon() and asks for all positions again.
 */
struct processor {
        struct current *current;
        const struct config *config; /* the first */
        const struct config *newest; /* held: decides rules, topics and limits */
        const char *bootstrap;
        struct metrics *metrics;
        struct state *state; /* NULL: none */
        struct judge *judge; /* lives as long as the dedup tables, whose digests depend on its key */
        const struct event_rules **rules; /* of the sources */
        struct transaction *transaction;  /* NULL: none yet */
        /*
         * The membership under which the positions were found: under a later one, partitions could belong to
         * another router.
         */
        rd_kafka_consumer_group_metadata_t *group;
        int64_t made_ms;                  /* monotonic: when the transaction was created */
        int is_ready;                     /* the transaction has fenced its predecessors */
        int is_open;                      /* decisions are not committed yet */
        int is_scanning;                  /* a partition is being scanned for gaps */
        int is_behind;                    /* the last batch was full: more records wait */
        struct partition_list partitions; /* of this router */
        struct partition_list followed;   /* of others, see standby.h */
        struct batch batch;
        struct decision_log decisions;
        /* Number of records of the open transaction that Kafka has refused for good, and an example. */
        size_t n_refused;
        struct message_origin refused;
        struct error refused_why;
};

/* Returns 0, or -1 with the reason; call processor_close() in either case. */
int processor_open(struct processor *processor, struct current *current, const char *bootstrap,
                   struct metrics *metrics, struct error *error) MUST_CHECK;
void processor_close(struct processor *processor);

/*
 * Whether records are still decided by an earlier configuration. Each batch is decided by one configuration:
 * commit the open batch, then call processor_reload(), before the next record.
 */
int processor_is_outdated(const struct processor *processor);

/* Apply the newest configuration, if no batch is open. */
void processor_reload(struct processor *processor);

/*
 * Create and initialize the transactional producer. Returns 0 when it is ready, 1 to try again, -1 with the
 * reason when processor_abandon() must come first.
 */
int processor_prepare(struct processor *processor, struct error *error) MUST_CHECK;

/* Note the group membership under which positions are found from now on; commits depend on it. */
void processor_note_membership(struct processor *processor, rd_kafka_t *consumer);

enum processor_result {
        PROCESSOR_DONE,         /* or ignored */
        PROCESSOR_UNPOSITIONED, /* not processed: ask for the partition's position again */
        PROCESSOR_FAILED,       /* call processor_abandon() */
};

/**
 * processor_take(processor, partitions, message, origin, error):
 * Remember or decide a record of one of these partitions, the router's or the followed ones, depending on its
 * offset. Ignore records of partitions without a position. Takes ownership of message. On PROCESSOR_FAILED,
 * error has the reason.
 */
enum processor_result processor_take(struct processor *processor, struct partition_list *partitions,
                                     rd_kafka_message_t *message, const struct consumer_origin *origin,
                                     struct error *error) MUST_CHECK;

/* Whether the open batch has reached its limits. */
int processor_is_full(const struct processor *processor);

/* Commit the open batch. Returns 0; or -1 with the reason, and the outcome may be unknown. */
int processor_commit(struct processor *processor, struct error *error) MUST_CHECK;

/* Whether no commit can succeed because the brokers are too old. */
int processor_has_old_brokers(const struct processor *processor);

/*
 * Discard the open batch and the producer; the next producer aborts its transaction. The dedup tables stay;
 * all positions must be asked for again.
 */
void processor_abandon(struct processor *processor);

#endif
