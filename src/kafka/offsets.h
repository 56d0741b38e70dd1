#ifndef KAFKA_OFFSETS_H
#define KAFKA_OFFSETS_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/range.h"

/* Asks Kafka where partitions begin and end, and how far the router's group is, without joining it. For one thread. */
struct offsets;

/* Returns NULL with the reason. */
struct offsets *offsets_new(const struct config *config, const char *bootstrap,
                            struct error *error) MUST_CHECK;
void offsets_free(struct offsets *offsets);

/* Whether what failed last did so because this account is not permitted to do it. */
int offsets_is_denied(const struct offsets *offsets);

/* How many partitions a topic has. Returns -1 with the reason: Kafka cannot be reached, or the topic is missing. */
int32_t offsets_partitions(struct offsets *offsets, const char *topic, int timeout_ms,
                           struct error *error) MUST_CHECK;

/**
 * offsets_committed(offsets, topic, n, committed, timeout_ms, error):
 * The group's committed offsets in partitions 0 to n - 1, -1 where there is none. Offsets of a transaction that is being
 * committed are waited for (KIP-447), as long as there is time. Returns 0, or -1 with the reason.
 */
int offsets_committed(struct offsets *offsets, const char *topic, int32_t n, int64_t *committed,
                      int timeout_ms, struct error *error) MUST_CHECK;

/**
 * offsets_bounds(offsets, topic, partition, low, high, timeout_ms, error):
 * The first offset that is there, and the one that the next record will have, open transactions included. Returns 0, or -1
 * with the reason.
 */
int offsets_bounds(struct offsets *offsets, const char *topic, int32_t partition, int64_t *low, int64_t *high,
                   int timeout_ms, struct error *error) MUST_CHECK;

/* As offsets_bounds(), but *high is where a read_committed consumer stops for now: before an open transaction. */
int offsets_stable_bounds(struct offsets *offsets, const char *topic, int32_t partition, int64_t *low,
                          int64_t *high, int timeout_ms, struct error *error) MUST_CHECK;

/* The first record at a time or later; *offset is -1 when there is none. Returns 0, or -1 with the reason. */
int offsets_at_time(struct offsets *offsets, const char *topic, int32_t partition, int64_t time_ms,
                    int64_t *offset, int timeout_ms, struct error *error) MUST_CHECK;

/* Let a range begin with its first record at a time or later, as far as it has one. Returns 0, or -1 with the reason. */
int offsets_begin_at(struct offsets *offsets, struct range *range, int64_t time_ms, int timeout_ms,
                     struct error *error) MUST_CHECK;

/**
 * offsets_stable_ranges(offsets, topic, ranges, n, timeout_ms, error):
 * All that a read_committed consumer can read of a topic for now: a range for each partition, whose number is the index.
 * The caller frees *ranges. Returns 0; or -1 with the reason, and *ranges NULL.
 */
int offsets_stable_ranges(struct offsets *offsets, const char *topic, struct range **ranges, size_t *n,
                          int timeout_ms, struct error *error) MUST_CHECK;

#endif
