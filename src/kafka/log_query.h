#ifndef KAFKA_LOG_QUERY_H
#define KAFKA_LOG_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Asks Kafka about the partitions of `deliveries`, for the router. It has connections of its own: on the consumer's
 * connection a question would wait until the broker has answered a fetch, which takes up to fetch.wait.max.ms on a quiet
 * log. Every answer belongs to one partition; a partition without a leader does not spoil those of the others. All calls
 * block, for a few seconds at most. For one thread.
 */
struct log_query;

/* Returns NULL with the reason. */
struct log_query *log_query_new(const struct config *config, const char *bootstrap,
                                struct error *error) MUST_CHECK;

/* Let every later question fail at once, so that a thread that asks ends soon. From any thread. */
void log_query_stop(struct log_query *query);

/* NULL is harmless. */
void log_query_free(struct log_query *query);

#define LOG_QUERY_EARLIEST INT64_C(-2)
#define LOG_QUERY_LATEST INT64_C(-1)

/* A question about one partition, and the answer to it. */
struct log_query_item {
        int32_t partition;
        int32_t leader; /* broker id, from log_query_leaders(); -1: the partition has none */
        /*
         * Asked: a time in ms since the epoch, 0 or later, or one of the two constants above. Answered: the first offset that has
         * that timestamp or a later one, -1 when there is none; the log start offset; or the last stable offset.
         */
        int64_t offset;
        struct error error; /* why there is no answer; empty: there is one */
};

/**
 * log_query_leaders(query, items, n, n_partitions, error):
 * Fill in the leaders of n partitions, and how many partitions the topic has. Returns 0, or -1 with the reason when no broker
 * answers or the topic is gone.
 */
int log_query_leaders(struct log_query *query, struct log_query_item *items, size_t n, int32_t *n_partitions,
                      struct error *error) MUST_CHECK;

/* Find n offsets. Items that already have an error are left alone. */
void log_query_offsets(struct log_query *query, struct log_query_item *items, size_t n);

/**
 * log_query_committed(query, items, n, metadata):
 * The group's committed offsets; -1 where there is none. Offsets of a transaction that is being committed are waited for
 * (KIP-447). metadata[i] receives the text stored with an offset, cut off at 63 bytes, or "". Items that already have an
 * error are left alone.
 */
#define LOG_QUERY_METADATA_SIZE 64
void log_query_committed(struct log_query *query, struct log_query_item *items, size_t n,
                         char (*metadata)[LOG_QUERY_METADATA_SIZE]);

/**
 * log_query_assigned(query, is_assigned, n):
 * Mark the partitions below n that the group has assigned to a member. Returns 1; or 0 when that cannot be said now: the group
 * is rebalancing, does not answer, or the account may not describe it.
 */
int log_query_assigned(struct log_query *query, uint8_t *is_assigned, int32_t n) MUST_CHECK;

/**
 * log_query_topic_is_available(query, topic, error):
 * Whether every partition of a topic has a leader. Returns 1, or 0 with the reason.
 */
int log_query_topic_is_available(struct log_query *query, const char *topic, struct error *error) MUST_CHECK;

#endif
