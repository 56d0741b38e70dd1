#ifndef DEDUP_SLICE_H
#define DEDUP_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* The identities of one slice of time: a chained hash table whose entries never move. */
struct slice;

struct slice_entry {
        uint8_t identity[16];
        uint64_t body;        /* digest of the body of the first record */
        int64_t first_offset; /* of the first record of this identity in this slice */
        uint32_t last_ms;     /* timestamp of the last record, relative to the slice's start */
        uint32_t next;        /* 1 + index of the next entry in the chain; 0 at the end */
};

struct slice *slice_new(int64_t start_ms) MUST_CHECK;
void slice_free(struct slice *slice);

/*
 * Free at most max pieces of 40 KiB of a slice, which can then only be shrunk and freed. Return the number of
 * pieces freed: less than max if none are left.
 */
size_t slice_shrink(struct slice *slice, size_t max);

int64_t slice_start_ms(const struct slice *slice);
size_t slice_size(const struct slice *slice);

/* Return the entry of an identity, or NULL. */
const struct slice_entry *slice_find(const struct slice *slice, const uint8_t identity[16]);

/**
 * slice_remember(slice, identity, body, offset, timestamp_ms):
 * Add a record whose timestamp falls into this slice; adding it again changes nothing. Return 0, 1 if the
 * identity's first record here has another body, or -1 when out of memory.
 */
int slice_remember(struct slice *slice, const uint8_t identity[16], uint64_t body, int64_t offset,
                   int64_t timestamp_ms) MUST_CHECK;

#endif
