#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

#include "base/compiler.h"

/*
 * malloc() for what a request takes and gives back at once: a thread keeps what it released, by size, and gives it out again.
 * libevent takes some thirty blocks a request, more at a time than malloc's own cache of a thread holds (7 of a size).
 *
 * What is kept is bounded, POOL_KEPT_MAX bytes a thread. Blocks are malloc()'s own: they may be released by any thread, and
 * larger ones than the pool keeps go through it unchanged. With AddressSanitizer nothing is kept, so that it sees all.
 */
#define POOL_KEPT_MAX ((size_t)1 << 20)

/* Memory of at least this size, not zeroed; NULL when it fails. */
void *pool_alloc(size_t size) MUST_CHECK;

/* Zeroed. */
void *pool_alloc_zeroed(size_t size) MUST_CHECK;

/* As realloc(). */
void *pool_resize(void *block, size_t size) MUST_CHECK;

/* A block of one of these; NULL is harmless. */
void pool_free(void *block);

/* Release what this thread keeps, before it ends. */
void pool_clear(void);

#endif
