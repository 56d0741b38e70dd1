#ifndef DEDUP_RUN_WRITER_H
#define DEDUP_RUN_WRITER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "dedup/entry.h"
#include "dedup/run.h"

/*
 * Writes runs: under a temporary name, which is replaced when all of the file is on disk. A crash leaves the
 * temporary file, which the next start deletes.
 */

#define RUN_NAME_SIZE 64
#define RUN_SUFFIX ".run"
#define RUN_TEMPORARY "temporary"

/* Write the name of the run of a range. Returns name. */
char *run_make_name(const struct run_range *range, char name[RUN_NAME_SIZE]);

/**
 * run_write(directory, range, entries, n, error):
 * Write a run of n entries, which are sorted and have no DEDUP_ANY_BODY. Return it, or NULL with the reason.
 */
struct run *run_write(int directory, const struct run_range *range, const struct dedup_entry *entries,
                      size_t n, struct error *error) MUST_CHECK;

/**
 * run_merge(directory, runs, n, stop, is_damaged, error):
 * Write one run that replaces n adjacent ones. Give up when *stop is set. Return it, or NULL with the
 * reason, and whether that is one of the runs.
 */
struct run *run_merge(int directory, struct run *const *runs, size_t n, const atomic_int *stop,
                      int *is_damaged, struct error *error) MUST_CHECK;

#endif
