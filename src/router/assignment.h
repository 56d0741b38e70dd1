#ifndef ROUTER_ASSIGNMENT_H
#define ROUTER_ASSIGNMENT_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "dedup/state.h"
#include "kafka/consumer.h"
#include "metrics/metrics.h"
#include "router/partition_list.h"
#include "router/position_finder.h"

/*
 * Gives each assigned partition a position, and has it read from there. A partition without a position waits
 * alone: it is not read, and its position is asked for again after a pause. Dedup tables are restored one
 * after the other, the one with the fewest records to read first, so that some partitions route early; but
 * none waits for one that is read slowly, as from a broker with a slow disk. Serves the partitions of this
 * router, and those that it follows (standby.h). For the router's thread.
 */
struct assignment {
        const struct config *config;
        struct metrics *metrics;           /* NULL: the partitions are followed only */
        struct partition_list *partitions; /* the owner's */
        struct state *state;               /* the owner's; NULL: none */
        struct position_finder *finder;
        uint64_t generation; /* changes when pending answers become void */
        uint64_t asked_generation;
        int is_stale;      /* the consumer is assigned other partitions than those with a position */
        int32_t restoring; /* the partition for which others wait with restoring; -1: none */
        int64_t turn_ms;   /* monotonic: when it was last looked at, */
        int64_t turn_next; /* and which record was its next one then */
};

/* Returns 0, or -1 with the reason; call assignment_close() in either case. */
int assignment_open(struct assignment *assignment, const struct config *config, const char *bootstrap,
                    struct partition_list *partitions, struct state *state, struct metrics *metrics,
                    struct error *error) MUST_CHECK;
void assignment_close(struct assignment *assignment);

/*
 * Set the assigned partitions. Partitions that stay keep their dedup tables, and others come from followed or
 * go there, unless it is NULL. Returns -1 when memory fails.
 */
int assignment_set(struct assignment *assignment, const rd_kafka_topic_partition_list_t *assigned,
                   struct partition_list *followed) MUST_CHECK;

/* Void the positions of all partitions, and pending answers. */
void assignment_void_positions(struct assignment *assignment);

/* Ask for positions that are due, and read from the positions that were found. Never blocks on Kafka. */
void assignment_start_reading(struct assignment *assignment, struct consumer *consumer);

/* Whether records are still to be read for a dedup table. Not if none come, for whatever reason. */
int assignment_is_restoring(const struct assignment *assignment);

/* Whether an answer is pending. */
int assignment_is_awaited(const struct assignment *assignment);

/* The consumer has lost its position in a partition. */
void assignment_lose_position(struct assignment *assignment, int32_t id, const char *reason);

/*
 * Read partitions again whose scan for gaps has ended (partition_scan()). Returns whether some scans are
 * still running.
 */
int assignment_end_scans(struct assignment *assignment, struct consumer *consumer);

#endif
