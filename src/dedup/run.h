#ifndef DEDUP_RUN_H
#define DEDUP_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "dedup/entry.h"
#include "dedup/run_format.h"

/*
 * A run: the entries of a range of records of one partition, in a file that is never changed. A run is part
 * of the state of a router, which is a cache: whatever is doubtful about a file is a reason to read the log
 * instead.
 *
 * Blocks are read, not mapped, so that a disk that fails is an error and no signal. The index and the filter
 * stay in memory: about 2 bytes for each entry. Any thread may use a run; whoever needs it holds a reference.
 */
struct run;

/**
 * run_open(directory, name, owner, error):
 * Open a run in a directory, given by its descriptor, and verify all of it but its blocks. Return NULL with
 * the reason, which may be that it has another owner.
 */
struct run *run_open(int directory, const char *name, const uint8_t owner[16],
                     struct error *error) MUST_CHECK;

/* The same for a file that is open, whose descriptor it takes, also in case of failure. */
struct run *run_open_fd(int fd, const char *name, const uint8_t owner[16], struct error *error) MUST_CHECK;

/* Take one more reference. Returns run. */
struct run *run_hold(struct run *run);

/* Give a reference back. NULL is harmless. */
void run_free(struct run *run);

const struct run_header *run_header(const struct run *run);

/* The name of its file. */
const char *run_name(const struct run *run);

/* Bytes in memory. */
size_t run_memory(const struct run *run);

/* Bytes on disk. */
uint64_t run_file_size(const struct run *run);

/* Begin to load what run_find() needs first. */
void run_prefetch(const struct run *run, const struct dedup_question *question);

/* Find out what it knows about earlier records. Returns 0, or -1 if the file is damaged or cannot be read. */
int run_find(const struct run *run, const struct dedup_question *question,
             enum dedup_answer *answer) MUST_CHECK;

/* Reads entries in their order. */
struct run_cursor;

/* Return a cursor at the first entry, or NULL when out of memory. It holds a reference. */
struct run_cursor *run_cursor_new(struct run *run) MUST_CHECK;
void run_cursor_free(struct run_cursor *cursor);

/* Read the next entry. Returns 1, 0 at the end, or -1 if the file is damaged or cannot be read. */
int run_cursor_next(struct run_cursor *cursor, struct dedup_entry *entry) MUST_CHECK;

#endif
