#ifndef MODEL_SLICE_H
#define MODEL_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* What one slice of time knows of the identities seen in it: a chained hash table whose entries never move. */
struct slice;

struct slice_entry {
        uint8_t identity[16];
        uint64_t body;        /* digest of the body of the first record */
        int64_t first_offset; /* of the first record of this identity in this slice */
        uint32_t last_ms;     /* the timestamp of the last one, after the slice's start */
        uint32_t next;        /* in its chain, 1 + index; 0 at the end */
};

struct slice *slice_new(int64_t start_ms) MUST_CHECK;
void slice_free(struct slice *slice);

/*
 * Give back some of a slice's memory, at most max pieces of 40 KiB; the slice is then good for nothing else. Returns how
 * many it gave back: fewer than max when none is left.
 */
size_t slice_shrink(struct slice *slice, size_t max);

int64_t slice_start_ms(const struct slice *slice);
size_t slice_size(const struct slice *slice);

/* The entry of an identity, or NULL. */
const struct slice_entry *slice_find(const struct slice *slice, const uint8_t identity[16]);

/**
 * slice_remember(slice, identity, body, offset, timestamp_ms):
 * Take note of a record whose timestamp falls into this slice; noting it again changes nothing. Returns 0; 1 when the
 * identity's first record here has another body; -1 when memory fails.
 */
int slice_remember(struct slice *slice, const uint8_t identity[16], uint64_t body, int64_t offset,
                   int64_t timestamp_ms) MUST_CHECK;

#endif
