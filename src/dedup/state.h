#ifndef DEDUP_STATE_H
#define DEDUP_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "dedup/dedup.h"
#include "dedup/state_directory.h"

/*
 * The state of a router on disk: what its dedup tables know about committed records, in files. A thread of
 * its own writes, merges and deletes them; the router's thread, which owns the tables, calls all functions.
 * A failure to write means only that the entries stay in memory, until a later attempt.
 */
struct state;

/* Open the state directory for a topic. Return NULL with the reason. */
struct state *state_open(const char *path, const char *topic, struct error *error) MUST_CHECK;

/* Complete what has begun and close. NULL is harmless. */
void state_close(struct state *state);

/* The secret of the digests in the tables: STATE_KEY_SIZE bytes. */
const uint8_t *state_key(const struct state *state);

/**
 * state_restore(state, wanted, dedup, next):
 * Fill an empty table from files. Return 1 and the offset of the record to read next; or 0 if there is
 * none, then all must be read from the log.
 */
int state_restore(struct state *state, const struct state_wanted *wanted, struct dedup *dedup, int64_t *next);

/*
 * Delete the files of a partition, and log why. If that fails, they are not used again until it succeeds:
 * the disk may be read-only, and the files be found damaged each time.
 */
void state_discard(struct state *state, int32_t partition, const char *why);

/**
 * state_tend(state, partition, dedup, to, at_least):
 * Begin to write what a table has in memory if it is due (see dedup_seal()), to merge its files, and to
 * delete those that it does not need.
 */
void state_tend(struct state *state, int32_t partition, struct dedup *dedup, int64_t to, size_t at_least);

/*
 * Return the table of a partition with this number, or NULL if there is none any more. Called by
 * state_take_results() for what has been completed.
 */
typedef struct dedup *state_table_finder(void *arg, int32_t partition, uint64_t number);

/* Hand completed files to the tables. */
void state_take_results(struct state *state, state_table_finder *find, void *arg);

/* Number of failures to write since the start. */
uint64_t state_failures(const struct state *state);

#endif
