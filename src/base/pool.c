#include "base/pool.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Sizes are multiples of 32 bytes up to 1 KiB, then 2 and 4 KiB, the sizes of buffers of libevent. */
#define STEP ((size_t)32)
#define N_STEPS 32
#define N_SIZES (N_STEPS + 2)

struct kept {
        struct kept *next;
};

static __thread struct {
        struct kept *first[N_SIZES];
        size_t bytes;
} own;

static size_t
size_of(size_t index)
{
        return index < N_STEPS ? (index + 1) * STEP : N_STEPS * STEP << (index - N_STEPS + 1);
}

/* Return the index of the smallest size that is large enough, or N_SIZES. */
static size_t
index_for(size_t size)
{
        size_t index = N_STEPS;

        if (size <= N_STEPS * STEP)
                return size == 0 ? 0 : (size - 1) / STEP;
        while (index < N_SIZES && size_of(index) < size)
                index++;
        return index;
}

#ifndef __SANITIZE_ADDRESS__
/*
 * Return the index of the largest size that fits into the block, or N_SIZES if the block is not to be kept.
 */
static size_t
index_of(void *block)
{
        size_t size = malloc_usable_size(block), index = N_SIZES;

        if (size < STEP || size >= 2 * size_of(N_SIZES - 1))
                return N_SIZES;
        if (size < size_of(N_STEPS))
                return size / STEP - 1 < N_STEPS ? size / STEP - 1 : N_STEPS - 1;
        while (size_of(--index) > size)
                ;
        return index;
}
#endif

void *
pool_alloc(size_t size)
{
        size_t index = index_for(size);
        struct kept *block;

        if (index == N_SIZES)
                return malloc(size);
        block = own.first[index];
        if (block == NULL)
                return malloc(size_of(index));
        own.first[index] = block->next;
        if (block->next != NULL) /* the next block to be reused; it may have left the CPU cache */
                __builtin_prefetch(block->next, 1);
        own.bytes -= size_of(index);
        return block;
}

void *
pool_alloc_zeroed(size_t size)
{
        void *block = pool_alloc(size);

        return block == NULL ? NULL : memset(block, 0, size);
}

void *
pool_resize(void *block, size_t size)
{
        size_t index = index_for(size);

        if (block == NULL)
                return pool_alloc(size);
        return realloc(block, index == N_SIZES ? size : size_of(index));
}

void
pool_free(void *block)
{
        if (block == NULL)
                return;
#ifndef __SANITIZE_ADDRESS__
        struct kept *kept = block;
        size_t index = index_of(block);

        if (index < N_SIZES && own.bytes + size_of(index) <= POOL_KEPT_MAX) {
                kept->next = own.first[index];
                own.first[index] = kept;
                own.bytes += size_of(index);
                return;
        }
#endif
        free(block);
}

void
pool_clear(void)
{
        for (size_t i = 0; i < N_SIZES; i++) {
                struct kept *kept;

                while ((kept = own.first[i]) != NULL) {
                        own.first[i] = kept->next;
                        free(kept);
                }
        }
        own.bytes = 0;
}
