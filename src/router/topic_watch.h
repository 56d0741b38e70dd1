#ifndef ROUTER_TOPIC_WATCH_H
#define ROUTER_TOPIC_WATCH_H

#include <stdint.h>

#include "config/config.h"
#include "kafka/consumer.h"
#include "metrics/metrics.h"
#include "router/partition_status.h"
#include "router/position_finder.h"
#include "router/processor.h"

/*
 * What the position finder sees of `deliveries` every five seconds: partitions without a leader, or from
 * which no records arrive; added partitions; and partitions that no router has, for which the router rejoins
 * its group. For the router's thread.
 */
struct topic_watch {
        const struct config *config;
        struct position_finder *finder; /* the owner's, like the processor */
        struct processor *processor;
        int32_t n_partitions; /* of the topic; -1: unknown yet */
        int64_t rejoined_ms;  /* monotonic; 0: never */
        uint64_t n_looks;     /* number of the last view that was used */
};

/*
 * Use the last view, set the metrics of the partitions, and fill in status. consumer is the group's member;
 * NULL: there is none.
 */
void topic_watch_report(struct topic_watch *watch, struct consumer *consumer,
                        struct partition_status *status);

#endif
