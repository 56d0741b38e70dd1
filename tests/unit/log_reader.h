#ifndef TESTS_LOG_READER_H
#define TESTS_LOG_READER_H

#include <stddef.h>
#include <stdint.h>

#include "dedup/dedup.h"
#include "dedup/state.h"

/*
 * Reads random logs as a router would, with commits, expiry, rewinds and restarts in random order, and
 * compares each answer with the definition: a record repeats an earlier one with the same identity and body
 * that is at most the window older. With a state directory, commits write files, and restarts read them; then
 * files are damaged as well.
 */

#define LOG_LEN 300

struct line {
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        uint64_t body;
        int64_t offset;
        int64_t timestamp_ms;
        int answered; /* -1: unknown, or the answer when it was decided first */
};

struct reader {
        struct line log[LOG_LEN];
        int64_t window_ms;
        struct dedup *dedup;
        uint64_t random;
        size_t next;       /* index of the next line to read */
        size_t expired;    /* no line before this one will be decided again */
        int64_t needed_ms; /* the earliest time that had to be checked and was not covered */
        size_t n_repeats, n_conflicts, n_reread, n_uncovered;
        /* With a state directory: */
        struct state *state; /* NULL: none */
        const char *directory;
        int may_damage;
        size_t known; /* the table has records before this line, maybe uncommitted ones */
        size_t n_restored, n_damaged, n_found, n_merged;
};

/* xorshift64*: a number below n, the same in each run. */
int64_t reader_dice(struct reader *reader, int64_t n);

/*
 * Write a log of few identities over several windows. Timestamps rise, except for at most the given skew; and, with
 * jumps, while a clock is wrong for some lines.
 */
void reader_write_log(struct reader *reader, int64_t skew, int with_jumps);

/* Make a new table to continue from a line, filled from the first line of the log that is recent enough. */
void reader_restore(struct reader *reader, size_t committed);

/* Read the log to its end. */
void reader_read_log(struct reader *reader);

#endif
