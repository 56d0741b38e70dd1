#ifndef DEDUP_DEDUP_H
#define DEDUP_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dedup/entry.h"

/*
 * The dedup table: the deliveries of one partition within the dedup window.
 *
 * A record is a duplicate if an earlier record of its partition, at most the window older by record
 * timestamp, has the same identity and body. It is a conflict if all earlier records of its identity have
 * other bodies. The answer depends on the log alone, so it is the same after a restart, after a rewind, and
 * in an audit:
 *
 * - An entry has the offset of the first record and the timestamp of the last record with its identity and
 *   body. It is an earlier record only for offsets after its first, so entries ahead of a rewound reader do
 *   no harm.
 * - A table must be filled from the start of a slice, which dedup_restore_start() returns.
 * - Only what no record from a given time on can need is dropped: the time of a record that will not be read
 *   again, because its transaction has been committed.
 *
 * An entry takes 44 bytes in memory, where time is divided into slices of a sixteenth of the window
 * (slice_list.h). A lookup costs one probe per slice, at most 17 while timestamps rise, which they do under
 * LogAppendTime except for the skew between the clocks of two brokers.
 */
struct dedup;

#define DEDUP_COMPLETE INT64_MIN

/**
 * dedup_new(window_ms, complete_from_ms):
 * Return an empty table for a window of at least 1 ms. The caller will add all records from the timestamp
 * complete_from_ms on, or all records there are if it is DEDUP_COMPLETE. Return NULL when out of memory.
 */
struct dedup *dedup_new(uint64_t window_ms, int64_t complete_from_ms) MUST_CHECK;
void dedup_free(struct dedup *dedup);

/**
 * dedup_check(dedup, identity, body, offset, timestamp_ms, answer):
 * Look up the record at an offset, then add it. body is a digest of its body. Return 0, or -1 when out of
 * memory; then nothing is added and answer is not valid.
 */
int dedup_check(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
                int64_t offset, int64_t timestamp_ms, enum dedup_answer *answer) MUST_CHECK;

/**
 * dedup_find(dedup, identity, body, offset, timestamp_ms):
 * Like dedup_check(), but do not add the record; for a record that claims an identity that it must not
 * occupy.
 */
enum dedup_answer dedup_find(const struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE],
                             uint64_t body, int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/*
 * Return whether the table has everything that a record at timestamp_ms needs. If a timestamp falls far back,
 * after a broker's clock was wrong, it does not, and must be restored.
 */
int dedup_covers(const struct dedup *dedup, int64_t timestamp_ms) MUST_CHECK;

/* Only add the record: like dedup_check() without its search of every slice. */
int dedup_remember(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
                   int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/*
 * Drop the slices that no record at timestamp_ms or later can need. Keep one slice more, for timestamps that
 * fall back by the skew between the clocks of two brokers. Each call frees a bounded part of the memory of
 * dropped slices, and none scans entries.
 */
void dedup_expire(struct dedup *dedup, int64_t timestamp_ms);

uint64_t dedup_window_ms(const struct dedup *dedup);

/* Return the number of entries: one for each identity, slice and body. */
size_t dedup_size(const struct dedup *dedup);

/*
 * Return the timestamp from which to fill a table for records at timestamp_ms, up to a slice before it, or
 * later.
 */
int64_t dedup_restore_start(uint64_t window_ms, int64_t timestamp_ms);

/*
 * Return the timestamp from which answers are right if nothing older than first_ms can be read: the least one
 * whose dedup_restore_start() is first_ms or later, rounded up by at most a slice.
 */
int64_t dedup_trusted_from(uint64_t window_ms, int64_t first_ms);

#endif
