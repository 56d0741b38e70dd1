#ifndef MODEL_SKETCH_H
#define MODEL_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define SKETCH_FINGERPRINT_SIZE 16

/* What a fingerprint stands for. */
enum sketch_side {
        SKETCH_REQUIRED, /* a record that must be there */
        SKETCH_ALLOWED,  /* one that may be there */
        SKETCH_FOUND,    /* one that is */
};

/*
 * Compares millions of records with those that must or may be there in memory that does not grow with them: each
 * fingerprint goes into one of a fixed number of buckets, which knows how many there were of each side and the sums of
 * their other bits. A bucket in which those sums agree has what it must have, but for chances of 1 in 2^64. What an
 * unbalanced one lacks or has too much must be found out by looking at its fingerprints again.
 */
struct sketch;

/* 2^bits buckets of 32 bytes. NULL when memory fails. */
struct sketch *sketch_new(unsigned bits) MUST_CHECK;
void sketch_free(struct sketch *sketch);

void sketch_add(struct sketch *sketch, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE],
                enum sketch_side side);

size_t sketch_size(const struct sketch *sketch);

/* The bucket of a fingerprint, 0 to sketch_size() - 1. */
size_t sketch_bucket(const struct sketch *sketch, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE]);

/* Whether found is what is required, with all of what is allowed or with none of it. */
int sketch_is_balanced(const struct sketch *sketch, size_t bucket);

/* How many fingerprints went into the bucket: it has no more different ones than that. */
uint64_t sketch_count(const struct sketch *sketch, size_t bucket);

#endif
