#ifndef ROUTER_PLACEMENT_H
#define ROUTER_PLACEMENT_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/consumer.h"
#include "metrics/metrics.h"
#include "router/locator.h"
#include "router/partition.h"
#include "router/partition_status.h"

/*
 * Sees that each assigned partition has a position and is read from there. A partition that has none waits by itself: it is
 * not read, and its position is asked for again after a while. For the router's thread.
 */
struct placement {
        const struct config *config;
        struct metrics *metrics;
        struct partition_list *partitions; /* the owner's */
        struct locator *locator;
        uint64_t generation; /* changes when positions that are being asked for no longer count */
        uint64_t asked_generation;
        int is_stale;         /* partitions are read that have no position */
        int32_t n_partitions; /* what the topic had at first; -1: not known yet */
        int64_t rejoined_ms;  /* monotonic; 0: never */
        uint64_t n_looks;     /* the number of the last view of the logs that was read */
        int64_t emptied_ms;   /* monotonic: when the consumer last had no record to give; set by the owner */
};

/* Returns 0, or -1 with the reason; placement_close() is needed in either case. */
int placement_open(struct placement *placement, const struct config *config, const char *bootstrap,
                   struct partition_list *partitions, struct metrics *metrics,
                   struct error *error) MUST_CHECK;
void placement_close(struct placement *placement);

/* These partitions were assigned, and no others. The tables of those that stay are kept. Returns -1 when memory fails. */
int placement_set(struct placement *placement, const rd_kafka_topic_partition_list_t *assigned) MUST_CHECK;

/* Positions that are being asked for no longer count. */
void placement_restart(struct placement *placement);

/* Ask for positions that are due, and read from those that have been found. Never blocks on Kafka. */
void placement_place(struct placement *placement, struct consumer *consumer);

/* Whether an answer is pending. */
int placement_is_awaited(const struct placement *placement);

/* The consumer has lost its position in a partition. */
void placement_lose(struct placement *placement, int32_t id, const char *reason);

/*
 * Read the partitions again whose gaps have been looked at (partition_scan()). Returns whether some are still being looked
 * at.
 */
int placement_end_scans(struct placement *placement, struct consumer *consumer);

/*
 * Set the metrics of the partitions, and fill in status. When partitions have been assigned to no router for a while, the
 * consumer joins its group again. consumer may be NULL.
 */
void placement_look(struct placement *placement, struct consumer *consumer, struct partition_status *status);

#endif
