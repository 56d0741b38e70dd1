#ifndef ROUTER_MEMBER_H
#define ROUTER_MEMBER_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/consumer.h"
#include "metrics/metrics.h"

/*
 * The router as a member of its consumer group: its consumer, which is replaced when it fails for good, and
 * the partitions assigned to it.
 */
struct member {
        const struct config *config;
        const char *bootstrap;
        struct metrics *metrics;
        struct statistics_totals statistics;       /* of the consumer, as last reported */
        struct consumer *consumer;                 /* NULL: none yet */
        rd_kafka_topic_partition_list_t *assigned; /* NULL: none assigned yet, or revoked */
        int has_changed; /* partitions were assigned or revoked; reset by the owner */
        int n_fenced;    /* since fenced_since_ms */
        int64_t fenced_since_ms;
};

/* Create a consumer if it is missing. Returns 0, or -1 with the reason. */
int member_prepare(struct member *member, struct error *error) MUST_CHECK;

/* Free the consumer, which has failed for good, and forget the partitions: the next consumer joins anew. */
void member_leave(struct member *member);

/**
 * member_note_fenced(member):
 * The consumer was fenced by another member of the same name. Returns whether this has happened so often that
 * there must be one. A single time may be our own doing: if the answer to a join is lost with its broker, the
 * name stays with a member that does not exist.
 */
int member_note_fenced(struct member *member) MUST_CHECK;

#endif
