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

/* Where to read a partition from, worked out from what Kafka says of its log and of the group's committed offset. */

/* Asked for one partition. */
struct position_question {
        int32_t partition;
        int64_t needed_ms;   /* as in struct partition */
        int64_t diverged_at; /* as in struct partition */
        int64_t bare_offset; /* as in struct partition */
        int64_t bare_ms;     /* as in struct partition */
        /* As in struct partition: whether this topic accepts records again is looked at first. */
        char topic[PARTITION_TOPIC_SIZE];
};

struct position {
        int32_t partition;
        enum partition_trouble
            trouble; /* TROUBLE_NONE: found; else error says more, and only high may be known */
        struct error error;
        int64_t low;         /* the first offset that the log has */
        int64_t high;        /* the offset that the next record will have; -1: not known */
        int64_t decide_from; /* where to begin to decide */
        int64_t routed_ms; /* timestamp of the record before decide_from when it was routed; -1: not known */
        int64_t restore_from; /* where to begin to read when the dedup table is to be filled anew */
        int64_t complete_ms;  /* the table then knows all records from this time on */
        int64_t n_deleted;    /* records that were deleted before they were routed */
        int64_t n_cut_off;    /* records that had been routed and that the log has lost; 0: none */
};

/* The question for the position of a partition, as it stands. */
struct position_question position_question(const struct partition *partition);

/**
 * position_find(query, config, questions, n, positions, n_partitions):
 * Find the positions for n questions; blocks for some seconds when brokers do not answer. A log that was cut off, by an
 * unclean leader election or a disk restored from a copy, is recognised by its records: those that were appended since have
 * timestamps above that of the last record routed (KIP-320 would tell by leader epochs, which librdkafka 2.0.2 does not show).
 * Reading then begins at the first of these. n_partitions is how many partitions the topic has; -1 when not known.
 */
void position_find(struct log_query *query, const struct config *config,
                   const struct position_question *questions, size_t n, struct position *positions,
                   int32_t *n_partitions);

/**
 * position_add_offset(offsets, topic, partition):
 * Add what is to be committed for a partition: the offset of the next record, and as metadata the timestamp of the record
 * before it, which position_find() needs. Returns 0, or -1 when memory fails; then the offsets must not be committed.
 */
int position_add_offset(rd_kafka_topic_partition_list_t *offsets, const char *topic,
                        const struct partition *partition) MUST_CHECK;

#endif
