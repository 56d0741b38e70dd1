#ifndef ROUTER_POSITION_H
#define ROUTER_POSITION_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/log_query.h"
#include "router/partition.h"

/* Where to read a partition from, derived from its log and from the group's committed offset. */

/* A question about one partition. The members correspond to those of struct partition. */
struct position_question {
        int32_t partition;
        int64_t needed_ms;
        int64_t diverged_at;
        int64_t diverged_ms;
        int64_t bare_offset;
        int64_t bare_ms;
        char topic[PARTITION_TOPIC_SIZE]; /* first check whether this topic accepts records again; "": none */
};

struct position {
        int32_t partition;
        enum partition_trouble
            trouble; /* TROUBLE_NONE: found; otherwise see error, and only high may be known */
        struct error error;
        int64_t low;          /* the first offset in the log */
        int64_t high;         /* the offset that the next record will have; -1: unknown */
        int64_t decide_from;  /* the first offset to decide */
        int64_t routed_ms;    /* timestamp of the record before decide_from when it was routed; -1: unknown */
        int64_t restore_from; /* the offset to read from when the dedup table must be restored */
        int64_t complete_ms;  /* the restored table contains all records from this time on */
        int is_uncommitted;   /* the group has no committed offset: nothing was routed, or it is forgotten */
        int64_t n_deleted;    /* records deleted before they were routed */
        int64_t n_cut_off;    /* routed records that the log has lost; 0: none */
};

/* Return the question for the position of a partition in its present state. */
struct position_question position_question(const struct partition *partition);

/**
 * position_find(query, config, questions, n, positions, n_partitions):
 * Find the positions for n questions; blocks for some seconds when brokers do not answer. A log that was
 * truncated, by an unclean leader election or a disk restored from a copy, is recognised by its records:
 * those appended since have timestamps above that of the last routed record (KIP-320 would use leader epochs,
 * which librdkafka 2.0.2 does not expose). Reading then begins at the first of these. *n_partitions is the
 * topic's number of partitions; -1 when unknown.
 */
void position_find(struct log_query *query, const struct config *config,
                   const struct position_question *questions, size_t n, struct position *positions,
                   int32_t *n_partitions);

/**
 * position_add_offset(offsets, topic, partition):
 * Add the offset to commit for a partition: that of the next record, with the timestamp of the record before
 * it as metadata, which position_find() needs. Returns 0, or -1 when memory fails; then the offsets must not
 * be committed.
 */
int position_add_offset(rd_kafka_topic_partition_list_t *offsets, const char *topic,
                        const struct partition *partition) MUST_CHECK;

#endif
