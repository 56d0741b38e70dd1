#ifndef DEDUP_SLICE_H
#define DEDUP_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * The identities of one slice of time, of at most 12 days: a chained hash table whose entries never move.
 */
struct slice;

/* What an entry is for, for those who list all. */
enum slice_kind {
        SLICE_FIRST_BODY, /* an identity, with the body that came first */
        SLICE_OTHER_BODY, /* an identity mixed with another body */
        SLICE_ANY_BODY,   /* all other bodies of an identity */
};

struct slice_entry {
        uint8_t identity[16];
        uint64_t body;         /* digest of the body */
        int64_t first_offset;  /* of the first record with this identity and body in this slice */
        uint32_t last_ms : 30; /* timestamp of the last one, relative to the slice's start */
        uint32_t kind : 2;     /* enum slice_kind */
        uint32_t next;         /* 1 + index of the next entry in the chain; 0 at the end */
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

/* Return one of the slice_size() entries. */
const struct slice_entry *slice_entry_at(const struct slice *slice, uint32_t index);

/**
 * slice_remember(slice, kind, identity, body, offset, timestamp_ms):
 * Add a record whose timestamp falls into this slice; adding it again changes nothing. Return 0, 1 if the
 * identity is there with another body, for which nothing changes, or -1 when out of memory.
 */
int slice_remember(struct slice *slice, enum slice_kind kind, const uint8_t identity[16], uint64_t body,
                   int64_t offset, int64_t timestamp_ms) MUST_CHECK;

#endif
