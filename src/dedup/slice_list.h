#ifndef DEDUP_SLICE_LIST_H
#define DEDUP_SLICE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dedup/entry.h"

/*
 * The part of a dedup table that is in memory. Time is divided into slices, counted from the epoch, each with
 * a hash table of its own, so that expiry drops whole slices.
 *
 * One thread changes it. When it is not changed any more, any thread may read it; whoever needs it holds a
 * reference.
 */
struct slice_list;

/* Return an empty part with slices of width_ms (at least 1), or NULL when out of memory. */
struct slice_list *slice_list_new(int64_t width_ms) MUST_CHECK;

/* Take one more reference. Returns list. */
struct slice_list *slice_list_hold(struct slice_list *list);

/* Give a reference back. NULL is harmless. */
void slice_list_free(struct slice_list *list);

/* Return what it knows about earlier records. */
enum dedup_answer slice_list_find(const struct slice_list *list,
                                  const struct dedup_question *question) MUST_CHECK;

/* Add a record. Returns 0, or -1 when out of memory. */
int slice_list_remember(struct slice_list *list, const uint8_t identity[DEDUP_IDENTITY_SIZE], uint64_t body,
                        int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/* Drop the slices that begin before a time, and free a bounded part of the memory of dropped ones. */
void slice_list_expire(struct slice_list *list, int64_t oldest_kept_ms);

/* Number of entries: one for each slice, identity and body, and one more for an identity with several. */
size_t slice_list_size(const struct slice_list *list);

/* The start of the oldest slice; INT64_MAX: it has none. */
int64_t slice_list_start_ms(const struct slice_list *list);

/**
 * slice_list_sort(list, n):
 * Return all entries but those of DEDUP_ANY_BODY, sorted by identity and body, each pair once; the caller
 * frees them. Return NULL when out of memory.
 */
struct dedup_entry *slice_list_sort(const struct slice_list *list, size_t *n) MUST_CHECK;

#endif
