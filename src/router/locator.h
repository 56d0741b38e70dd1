#ifndef ROUTER_LOCATOR_H
#define ROUTER_LOCATOR_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "router/position.h"

/*
 * Finds positions in a thread of its own, so that partitions whose leader does not answer hold up no others. Every five
 * seconds it also looks which partitions have no leader, where their logs end, and which are assigned to no member of the
 * group. Calls are for one thread, the router's.
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

/* The log of a partition. */
struct locator_log {
        int has_leader;
        int64_t end; /* the last stable offset; -1: not known */
};

/* What the last look found. */
struct locator_view {
        uint64_t number;          /* of the look; 0: there was none */
        int32_t n_partitions;     /* of the topic; -1: not known yet */
        struct locator_log *logs; /* of partitions 0 to n_logs - 1 */
        size_t n_logs;
        struct locator_unassigned *unassigned;
        size_t n_unassigned;
        int n_looks; /* how many in a row found unassigned partitions */
};

/* A copy, which locator_view_clear() releases. */
void locator_view(struct locator *locator, struct locator_view *view);
void locator_view_clear(struct locator_view *view);

#endif
