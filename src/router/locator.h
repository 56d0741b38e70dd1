#ifndef ROUTER_LOCATOR_H
#define ROUTER_LOCATOR_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "router/position.h"

/*
 * Finds positions in a thread of its own, so that partitions whose leader does not answer hold up no others. Every five
 * seconds it also looks which partitions the group has assigned to nobody. Calls are for one thread, the router's.
 */
struct locator;

/* Returns NULL with the reason. */
struct locator *locator_new(const struct config *config, const char *bootstrap,
                            struct error *error) MUST_CHECK;

/* Waits for the thread, up to some seconds. NULL is harmless. */
void locator_free(struct locator *locator);

/* Whether an answer is pending or may be taken: then nothing more can be asked. */
int locator_is_busy(struct locator *locator);

/* Ask for n positions, at least one. */
void locator_ask(struct locator *locator, const struct position_question *questions, size_t n);

/**
 * locator_take(locator, n):
 * The answers to what was asked last, n of them, which the caller frees; NULL while there are none.
 */
struct position *locator_take(struct locator *locator, size_t *n);

/* How many partitions this router has been assigned. Only when others have some, the group is asked for those of nobody. */
void locator_set_assigned(struct locator *locator, int n);

/* A partition that no member of the group has. */
struct locator_unassigned {
        int32_t partition;
        int64_t waiting; /* records that nobody routes; 0 also when that is not known */
};

/**
 * locator_unassigned(locator, n, n_looks, n_partitions):
 * The partitions that nobody has, as the last look found them, n of them; the array is the caller's to free, NULL when there
 * are none. n_looks is how many looks in a row found some. n_partitions is what the topic has, -1 when not known yet.
 */
struct locator_unassigned *locator_unassigned(struct locator *locator, size_t *n, int *n_looks,
                                              int32_t *n_partitions);

#endif
