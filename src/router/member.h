#ifndef ROUTER_MEMBER_H
#define ROUTER_MEMBER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/consumer.h"
#include "metrics/metrics.h"

/*
 * The router as a member of its consumer group: its consumer, which is replaced when it fails for good, and the
 * partitions that it has been given.
 */
struct member {
        const struct config *config;
        const char *bootstrap;
        struct metrics *metrics;
        struct statistics_totals statistics;       /* of the consumer, as told last */
        struct consumer *consumer;                 /* NULL: to be made */
        rd_kafka_topic_partition_list_t *assigned; /* NULL: none given yet, or taken away */
        int has_changed; /* partitions were given or taken away; for the owner to reset */
        int n_fenced;    /* since */
        int64_t fenced_since_ms;
};

/* Returns 0 when there is a consumer, or -1 with the reason why none can be made now. */
int member_prepare(struct member *member, struct error *error) MUST_CHECK;

/* Let go of the consumer, which has failed for good, and of the partitions: the next one joins anew. */
void member_leave(struct member *member);

/**
 * member_note_fenced(member):
 * The consumer was told that another has its name. Returns whether that has happened so often that there must be one:
 * being fenced once may be our own doing, for a join whose answer was lost with its broker leaves the name to a member that
 * nobody is.
 */
int member_note_fenced(struct member *member) MUST_CHECK;

#endif
