#include "model/sketch.h"

#include <stdlib.h>
#include <string.h>

struct bucket {
        uint32_t n_required;
        uint32_t n_allowed;
        uint32_t n_found;
        uint64_t surplus; /* sum of what is found less the sum of what is required, modulo 2^64 */
        uint64_t allowed; /* sum of what is allowed */
};

struct sketch {
        size_t n_buckets; /* a power of two */
        struct bucket buckets[];
};

struct sketch *
sketch_new(unsigned bits)
{
        size_t n = (size_t)1 << bits;
        struct sketch *sketch = calloc(1, sizeof(*sketch) + n * sizeof(struct bucket));

        if (sketch != NULL)
                sketch->n_buckets = n;
        return sketch;
}

void
sketch_free(struct sketch *sketch)
{
        free(sketch);
}

size_t
sketch_size(const struct sketch *sketch)
{
        return sketch->n_buckets;
}

/* A fingerprint is a cryptographic digest: its first half chooses the bucket, its second half is summed up. */
size_t
sketch_bucket(const struct sketch *sketch, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE])
{
        uint64_t half;

        memcpy(&half, fingerprint, sizeof(half));
        return (size_t)half & (sketch->n_buckets - 1);
}

void
sketch_add(struct sketch *sketch, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE], enum sketch_side side)
{
        struct bucket *bucket = &sketch->buckets[sketch_bucket(sketch, fingerprint)];
        uint64_t half;

        memcpy(&half, fingerprint + sizeof(half), sizeof(half));
        switch (side) {
        case SKETCH_REQUIRED:
                bucket->n_required++;
                bucket->surplus -= half;
                break;
        case SKETCH_ALLOWED:
                bucket->n_allowed++;
                bucket->allowed += half;
                break;
        case SKETCH_FOUND:
                bucket->n_found++;
                bucket->surplus += half;
                break;
        }
}

int
sketch_is_balanced(const struct sketch *sketch, size_t index)
{
        const struct bucket *bucket = &sketch->buckets[index];

        if (bucket->n_found == bucket->n_required && bucket->surplus == 0)
                return 1;
        return bucket->n_found == (uint64_t)bucket->n_required + bucket->n_allowed &&
               bucket->surplus == bucket->allowed;
}

uint64_t
sketch_count(const struct sketch *sketch, size_t index)
{
        const struct bucket *bucket = &sketch->buckets[index];

        return (uint64_t)bucket->n_required + bucket->n_allowed + bucket->n_found;
}
