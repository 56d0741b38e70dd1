#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

#include "base/compiler.h"

/*
 * malloc() for short-lived blocks: each thread keeps the blocks that it releases, by size, and reuses them.
 * libevent allocates some thirty blocks per request, more at a time than malloc's own per-thread cache holds
 * (7 of a size).
 *
 * A thread keeps at most POOL_KEPT_MAX bytes. Blocks come from malloc(), so any thread may release them.
 * Large blocks are not kept. With AddressSanitizer none are, so that it sees every use.
 */
#define POOL_KEPT_MAX ((size_t)1 << 20)

/* Return a block of at least this size, not zeroed, or NULL. */
void *pool_alloc(size_t size) MUST_CHECK;

/* Likewise, zeroed. */
void *pool_alloc_zeroed(size_t size) MUST_CHECK;

/* Like realloc(). */
void *pool_resize(void *block, size_t size) MUST_CHECK;

/* Release a block from the pool. NULL is harmless. */
void pool_free(void *block);

/* Free the blocks that this thread keeps. Call this before the thread ends. */
void pool_clear(void);

#endif
