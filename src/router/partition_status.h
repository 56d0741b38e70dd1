#ifndef ROUTER_PARTITION_STATUS_H
#define ROUTER_PARTITION_STATUS_H

#include "base/error.h"
#include "dedup/state.h"
#include "kafka/consumer.h"
#include "metrics/metrics.h"
#include "router/partition_list.h"
#include "router/position_finder.h"

/* Publish the state of the partitions: metrics, the reason why not all are routed, lines in the log. */
struct partition_status {
        size_t n_routing;
        size_t n_refused;
        size_t n; /* partitions assigned to this router */
        size_t n_unassigned;
        uint64_t lag; /* in records, unassigned partitions included */
        uint64_t
            oldest_ms; /* since when a record in the lag can have waited, since the epoch; 0: none does */
        uint64_t remembered_ids; /* in the dedup tables */
        uint64_t state_files, state_bytes;
        uint64_t to_read;    /* records for the dedup tables of those that are being restored */
        struct error reason; /* why not all are routed; empty: no trouble, or they are being restored */
};

/**
 * partition_status_read(status, partitions, followed, ...): Summarize the router's partitions, and set the
 * metrics of these, the followed and the unassigned ones. consumer and state may be NULL.
 */
void partition_status_read(struct partition_status *status, const struct partition_list *partitions,
                           const struct partition_list *followed, const struct consumer *consumer,
                           const char *topic, const struct unassigned_partition *unassigned,
                           size_t n_unassigned, const struct state *state, struct metrics *metrics);

/* Log that a partition is not read, and why. */
void partition_status_log_waiting(const struct partition *partition);

#endif
