#ifndef DEDUP_STATE_DIRECTORY_H
#define DEDUP_STATE_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "dedup/run.h"

/*
 * The state directory of a router: the file `lock`; `key`, with the secret of its digests; and runs, named
 * by partition, first offset and the offset after the last one. One process uses it. All of it may be
 * deleted while no process does.
 */
struct state_directory;

#define STATE_KEY_SIZE 32

/*
 * Open the state directory for a topic, create what is missing, and lock it. Return NULL with the reason.
 */
struct state_directory *state_directory_open(const char *path, const char *topic,
                                             struct error *error) MUST_CHECK;

/* NULL is harmless. */
void state_directory_close(struct state_directory *directory);

/* Its descriptor, its secret, and what shows that a run belongs to it and to the topic. */
int state_directory_fd(const struct state_directory *directory);
const uint8_t *state_directory_key(const struct state_directory *directory);
const uint8_t *state_directory_owner(const struct state_directory *directory);

/* What a partition needs from its runs. */
struct state_wanted {
        int32_t partition;
        int64_t low;         /* the first offset in the log */
        int64_t from;        /* all records from this offset on, */
        int64_t to;          /* up to before this one or an earlier one, */
        int64_t complete_ms; /* with all of those from this time on */
};

/**
 * state_directory_load(directory, wanted, n):
 * Open adjacent runs that have what is wanted, verified but for what only the log can show. Delete the other
 * runs of the partition, and log why. Return an array of n runs, which the caller frees, or NULL if n is 0.
 */
struct run **state_directory_load(struct state_directory *directory, const struct state_wanted *wanted,
                                  size_t *n) MUST_CHECK;

/* Delete all runs of a partition. Returns their number, and whether none is left. */
size_t state_directory_discard(struct state_directory *directory, int32_t partition, int *is_done);

/* Delete the file of a run, if it is still there. */
void state_directory_remove(struct state_directory *directory, const struct run *run);

#endif
