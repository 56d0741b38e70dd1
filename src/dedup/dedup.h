#ifndef DEDUP_DEDUP_H
#define DEDUP_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dedup/entry.h"
#include "dedup/run.h"
#include "dedup/slice_list.h"

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
 *
 * With a state directory (state.h), the entries of committed records move into files (run.h), each for a
 * range of offsets, so that a restart needs to read only the records after the last one:
 *
 *   runs: from ... to, from ... to | being written ... | in memory ... next
 */
struct dedup;

/* Why a table is of no use any more. */
enum dedup_trouble {
        DEDUP_SOUND,
        DEDUP_OTHER_LOG, /* its files are of another log than the records that are read */
        DEDUP_DAMAGED,   /* one of its files is damaged or cannot be read */
};

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
 * memory or when dedup_trouble() says so; then nothing is added and answer is not valid.
 */
int dedup_check(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
                int64_t offset, int64_t timestamp_ms, enum dedup_answer *answer) MUST_CHECK;

/**
 * dedup_find(dedup, identity, body, offset, timestamp_ms, answer):
 * Like dedup_check(), but do not add the record; for a record that claims an identity that it must not
 * occupy.
 */
int dedup_find(struct dedup *dedup, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
               int64_t offset, int64_t timestamp_ms, enum dedup_answer *answer) MUST_CHECK;

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

/* Return the number of this table: no other one of the process has it. */
uint64_t dedup_number(const struct dedup *dedup);

/* Note that the table has identities of records that may have been published although they look forged. */
void dedup_note_doubtful(struct dedup *dedup);
int dedup_has_doubtful(const struct dedup *dedup);

/* Return the number of entries: one for each identity, body, and slice or file. */
size_t dedup_size(const struct dedup *dedup);

enum dedup_trouble dedup_trouble(const struct dedup *dedup);

/**
 * dedup_adopt(dedup, runs, n):
 * Let an empty table begin with n adjacent runs, whose references it takes. The caller will add the records
 * from the last one on that the runs know (range.last), which shows whether the log is the one that they
 * are of. Return 0, or -1 when out of memory.
 */
int dedup_adopt(struct dedup *dedup, struct run *const *runs, size_t n) MUST_CHECK;

/* Say at which offset an empty table without runs begins. */
void dedup_begin_at(struct dedup *dedup, int64_t offset);

/* What to write into a run. */
struct dedup_seal {
        struct slice_list *slices; /* a reference */
        struct run_range range;    /* but for owner and partition */
};

/**
 * dedup_seal(dedup, to, at_least, seal):
 * Begin to move the entries in memory into a run, if they are at_least so many, or as old as a slice. All
 * records below the offset `to` have been added and committed, and none above. Return whether there is
 * something to write; dedup_end_seal() must follow before the next call.
 */
int dedup_seal(struct dedup *dedup, int64_t to, size_t at_least, struct dedup_seal *seal) MUST_CHECK;

/*
 * The run was written, and takes the place of the entries; or NULL, then they stay, and will be tried
 * again.
 */
void dedup_end_seal(struct dedup *dedup, struct run *run);

/**
 * dedup_plan_merge(dedup, runs, max):
 * Choose runs to merge, so that their number stays small. Return their number, 0 if there is nothing to
 * merge; runs has references. dedup_end_merge() must follow before the next call.
 */
size_t dedup_plan_merge(struct dedup *dedup, struct run **runs, size_t max) MUST_CHECK;

/* A file cannot be read: dedup_trouble() says so from now on. */
void dedup_note_damage(struct dedup *dedup);

/*
 * Replace runs by the one that was made from them, if they are still there, and take its reference; NULL: it
 * could not be made.
 */
void dedup_end_merge(struct dedup *dedup, struct run *const *runs, size_t n, struct run *merged);

/* Whether entries are being written or runs merged. */
int dedup_is_busy(const struct dedup *dedup);

/* Return a run that is not needed any more, with its reference, or NULL. */
struct run *dedup_take_dropped(struct dedup *dedup) MUST_CHECK;

/* Number of runs, their bytes on disk and in memory. */
struct dedup_files {
        size_t n;
        uint64_t bytes;
        uint64_t memory;
};

struct dedup_files dedup_files(const struct dedup *dedup);

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
