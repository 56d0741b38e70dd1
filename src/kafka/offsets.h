#ifndef KAFKA_OFFSETS_H
#define KAFKA_OFFSETS_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/range.h"

/*
 * Queries the bounds of partitions and the committed offsets of the router's group, without joining it. For
 * one thread.
 */
struct offsets;

/* Returns NULL with the reason. */
struct offsets *offsets_new(const struct config *config, const char *bootstrap,
                            struct error *error) MUST_CHECK;
void offsets_free(struct offsets *offsets);

/* Whether the last failure was a missing permission. */
int offsets_is_denied(const struct offsets *offsets);

/*
 * Return the number of partitions of a topic; or -1 with the reason: Kafka is unreachable, or the topic is
 * missing.
 */
int32_t offsets_partitions(struct offsets *offsets, const char *topic, int timeout_ms,
                           struct error *error) MUST_CHECK;

/**
 * offsets_committed(offsets, topic, n, committed, timeout_ms, error):
 * Find the group's committed offsets in partitions 0 to n - 1; -1: none. Waits, within the time limit, for
 * offsets of a transaction that is being committed (KIP-447). Returns 0, or -1 with the reason.
 */
int offsets_committed(struct offsets *offsets, const char *topic, int32_t n, int64_t *committed,
                      int timeout_ms, struct error *error) MUST_CHECK;

/*
 * As offsets_committed(), but a transaction that is being committed is not waited for: a router may leave one
 * open for as long as it waits. Its offsets do not count.
 */
int offsets_committed_so_far(struct offsets *offsets, const char *topic, int32_t n, int64_t *committed,
                             int timeout_ms, struct error *error) MUST_CHECK;

/**
 * offsets_bounds(offsets, ranges, n, timeout_ms, error):
 * Set each of n ranges to its whole log: from the first offset there is to the one that the next record will
 * have, including open transactions. Returns 0, or -1 with the reason.
 */
int offsets_bounds(struct offsets *offsets, struct range *ranges, size_t n, int timeout_ms,
                   struct error *error) MUST_CHECK;

/*
 * Find the first record at a time or later; *offset is -1 without such a record. Returns 0, or -1 with the
 * reason.
 */
int offsets_at_time(struct offsets *offsets, const char *topic, int32_t partition, int64_t time_ms,
                    int64_t *offset, int timeout_ms, struct error *error) MUST_CHECK;

/*
 * Make a range begin at its first record at a time or later; it becomes empty without such a record. An
 * embedded broker does not search by time: the range stays as it is. Returns 0, or -1 with the reason.
 */
int offsets_begin_at(struct offsets *offsets, struct range *range, int64_t time_ms, int timeout_ms,
                     struct error *error) MUST_CHECK;

/**
 * offsets_stable_ranges(offsets, topic, ranges, n, timeout_ms, error):
 * List all that a read_committed consumer can read of a topic now: a range for each partition, indexed by its
 * number. The caller frees *ranges. Returns 0; or -1 with the reason, and *ranges NULL.
 */
int offsets_stable_ranges(struct offsets *offsets, const char *topic, struct range **ranges, size_t *n,
                          int timeout_ms, struct error *error) MUST_CHECK;

/*
 * Explain how to set the group's offset in one partition of `deliveries`, by an option of Kafka's tool, such
 * as --to-earliest. In the whole topic, it would publish the other partitions again.
 */
void offsets_explain_reset(const struct config *config, int32_t partition, const char *option,
                           struct error *how);

#endif
