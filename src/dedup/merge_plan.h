#ifndef DEDUP_MERGE_PLAN_H
#define DEDUP_MERGE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dedup/run.h"

/**
 * merge_plan(runs, n, width_ms, max, first):
 * Choose adjacent runs to merge, at most max: four of about the same size, so that each entry is written a
 * few times only; or those of a time of width_ms, when it has passed, so that at most about one run remains
 * for it. What has been merged for such a time expires together. Return their number and the first one's
 * index, or 0.
 */
size_t merge_plan(struct run *const *runs, size_t n, int64_t width_ms, size_t max, size_t *first) MUST_CHECK;

#endif
