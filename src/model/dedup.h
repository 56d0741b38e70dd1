#ifndef MODEL_DEDUP_H
#define MODEL_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Which deliveries of one partition have been there before.
 *
 * A record is a repeat when an earlier record of its partition, at most the window older by record timestamp, has the
 * same identity and the same body, and a conflict when all of those with its identity have other bodies. The answer
 * depends on the log alone: it is the same after a restart, after a rewind to offsets that were read before, and in an
 * audit. Three things make that so:
 *
 * - Time is cut into slices of a sixteenth of the window, counted from the epoch. Each slice has a table of its own,
 *   with one entry an identity: the offset and body of its first record there, the timestamp of its last; and one more
 *   for each other body. An entry tells an earlier record for every offset after its first, so what lies ahead of a
 *   rewound reader does no harm.
 * - A table must be filled from the start of a slice: dedup_restore_start() says from where.
 * - Slices are dropped whole, and only when no record from the given time on can need them. The time to give is
 *   that of a record that will not be read again: one whose transaction has been committed.
 *
 * An entry takes 40 bytes and 4 more for finding it. Looking up costs one probe a slice, 17 at most while
 * timestamps rise; they do under LogAppendTime but for the skew between two brokers' clocks.
 */
struct dedup;

#define DEDUP_IDENTITY_SIZE 16

enum dedup_answer {
        DEDUP_NEW,      /* no earlier record in the window */
        DEDUP_REPEAT,   /* one with the same body */
        DEDUP_CONFLICT, /* only ones with other bodies */
};

#define DEDUP_COMPLETE INT64_MIN

/**
 * dedup_new(window_ms, complete_from_ms):
 * An empty table for a window in milliseconds, at least 1, into which all records are going to be put whose timestamp is
 * complete_from_ms or later; DEDUP_COMPLETE: all that there are. NULL when memory fails.
 */
struct dedup *dedup_new(uint64_t window_ms, int64_t complete_from_ms) MUST_CHECK;
void dedup_free(struct dedup *dedup);

/**
 * dedup_check(dedup, identity, body, offset, timestamp_ms, answer):
 * Judge the record at an offset, and remember it. body is a digest of its body. Returns 0, or -1 when memory fails;
 * then nothing was remembered and there is no answer.
 */
int dedup_check(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
                int64_t offset, int64_t timestamp_ms, enum dedup_answer *answer) MUST_CHECK;

/**
 * dedup_find(dedup, identity, body, offset, timestamp_ms):
 * As dedup_check(), but without remembering the record: the answer for a record that claims an identity it must not occupy.
 */
enum dedup_answer dedup_find(const struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE],
                             uint64_t body, int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/*
 * Whether a record at timestamp_ms can be judged: nothing that is needed for it was left out or dropped. Timestamps that
 * fall far back, after a broker's clock was wrong, ask for what is no longer there; it is to be read again then.
 */
int dedup_covers(const struct dedup *dedup, int64_t timestamp_ms) MUST_CHECK;

/* Only remember the record: as dedup_check() without an answer, and without its search of every slice. */
int dedup_remember(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
                   int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/*
 * Drop the slices that no record at timestamp_ms or later can need; one slice more than that stays, for timestamps that
 * fall back by the skew between two brokers' clocks. Never scans entries, and gives their memory back bit by bit, a bit each
 * call.
 */
void dedup_expire(struct dedup *dedup, int64_t timestamp_ms);

uint64_t dedup_window_ms(const struct dedup *dedup);

/* How many entries there are: one for each identity, slice and body. */
size_t dedup_size(const struct dedup *dedup);

/* The timestamp from which to read, so that a record at timestamp_ms (or a slice before it) or later is judged rightly. */
int64_t dedup_restore_start(uint64_t window_ms, int64_t timestamp_ms);

/*
 * The timestamp from which records are judged rightly when nothing older than first_ms can be read: the least one whose
 * dedup_restore_start() lies there or later, up to a slice.
 */
int64_t dedup_trusted_from(uint64_t window_ms, int64_t first_ms);

#endif
