#ifndef KAFKA_LOG_QUERY_H
#define KAFKA_LOG_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Queries about the partitions of `deliveries`, for the router. They use separate connections: on the
 * consumer's connection a query would wait until the broker has answered a fetch, which takes up to
 * fetch.wait.max.ms on a quiet log. Every answer belongs to one partition; a partition without a leader does
 * not affect the others. All calls block, for a few seconds at most. For one thread.
 */
struct log_query;

/* Returns NULL with the reason. */
struct log_query *log_query_new(const struct config *config, const char *bootstrap,
                                struct error *error) MUST_CHECK;

/* Make all later queries fail immediately, so that the querying thread can end. From any thread. */
void log_query_stop(struct log_query *query);

/* NULL is harmless. */
void log_query_free(struct log_query *query);

#define LOG_QUERY_EARLIEST INT64_C(-2)
#define LOG_QUERY_LATEST INT64_C(-1)

/* A query about one partition, and its answer. */
struct log_query_item {
        int32_t partition;
        int32_t leader; /* broker id, from log_query_leaders(); -1: none */
        /*
         * Query: a time in ms since the epoch, 0 or later, or one of the two constants above. Answer: the
         * first offset with that timestamp or a later one, or -1; the log start offset; or the
         * last stable offset.
         */
        int64_t offset;
        struct error error; /* why there is no answer; empty: answered */
};

/**
 * log_query_leaders(query, items, n, n_partitions, error):
 * Set the leaders of n partitions, and the topic's number of partitions. Returns 0, or -1 with the reason
 * when no broker answers or the topic does not exist.
 */
int log_query_leaders(struct log_query *query, struct log_query_item *items, size_t n, int32_t *n_partitions,
                      struct error *error) MUST_CHECK;

/* Find n offsets. Items with an error are skipped. */
void log_query_offsets(struct log_query *query, struct log_query_item *items, size_t n);

/**
 * log_query_committed(query, items, n, metadata):
 * Find the group's committed offsets; -1: none. Waits for offsets of a transaction that is being committed
 * (KIP-447). metadata[i] receives the text stored with an offset, or "" if it is longer than 63 bytes. Items
 * with an error are skipped.
 */
#define LOG_QUERY_METADATA_SIZE 64
void log_query_committed(struct log_query *query, struct log_query_item *items, size_t n,
                         char (*metadata)[LOG_QUERY_METADATA_SIZE]);

/**
 * log_query_assigned(query, is_assigned, n):
 * Mark the partitions below n that are assigned to a member of the group. Returns 1; or 0 when this is
 * unknown now: the group is rebalancing or does not answer, or the account may not describe it.
 */
int log_query_assigned(struct log_query *query, uint8_t *is_assigned, int32_t n) MUST_CHECK;

/**
 * log_query_topic_is_available(query, topic, error):
 * Whether every partition of a topic has a leader. Returns 1, or 0 with the reason.
 */
int log_query_topic_is_available(struct log_query *query, const char *topic, struct error *error) MUST_CHECK;

#endif
