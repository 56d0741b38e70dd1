#ifndef ROUTER_STANDBY_H
#define ROUTER_STANDBY_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/consumer.h"
#include "router/assignment.h"
#include "router/processor.h"

/*
 * Keeps the dedup tables of the partitions that other routers have, so that this router need not read
 * dedup_window of them before it takes them over. It reads their records up to the committed offsets, in
 * rounds: records above may not be routed yet, and their log may still be cut off. For the router's thread,
 * but with a consumer of its own, outside the group, so that partitions that are routed are not disturbed.
 */
struct standby {
        const struct config *config;
        const char *bootstrap;
        struct processor *processor; /* the owner's; the partitions are processor->followed */
        struct assignment assignment;
        struct consumer *consumer; /* NULL: none yet */
        int64_t retry_ms;          /* monotonic: when to create it again */
        int64_t round_ms;          /* monotonic: when the next round begins */
        int has_more;              /* the last step has ended before there was nothing to read */
        int32_t n_partitions;      /* of the topic, when the partitions were last compared; -1: to compare */
};

/* Returns 0, or -1 with the reason; call standby_close() in either case. */
int standby_open(struct standby *standby, const struct config *config, const char *bootstrap,
                 struct processor *processor, struct error *error) MUST_CHECK;
void standby_close(struct standby *standby);

/* The partitions of this router have changed: follow all others. */
void standby_note_change(struct standby *standby);

/*
 * Do some of the work, for some milliseconds. n_partitions is that of the topic, -1: unknown. Does not wait
 * for Kafka, except when the consumer has failed.
 */
void standby_step(struct standby *standby, int32_t n_partitions);

/* Whether there is more to do soon. */
int standby_is_busy(const struct standby *standby);

#endif
