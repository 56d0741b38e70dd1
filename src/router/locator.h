#ifndef ROUTER_LOCATOR_H
#define ROUTER_LOCATOR_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "router/position.h"

/*
 * Finds positions in a thread of its own, so that partitions whose leader does not answer do not delay
 * others. Every five seconds it also finds the partitions without a leader, the ends of the logs, and the
 * partitions that are assigned to no member of the group. Calls are for one thread, the router's.
 */
struct locator;

/* Returns NULL with the reason. */
struct locator *locator_new(const struct config *config, const char *bootstrap,
                            struct error *error) MUST_CHECK;

/* Wait for the thread, for up to some seconds, and free. NULL is harmless. */
void locator_free(struct locator *locator);

/* Whether an answer is pending or ready: then no further question can be asked. */
int locator_is_busy(struct locator *locator);

/* Ask for n positions, at least one. */
void locator_ask(struct locator *locator, const struct position_question *questions, size_t n);

/**
 * locator_take(locator, n):
 * Return the n answers to the last questions, which the caller frees; NULL while there are none.
 */
struct position *locator_take(struct locator *locator, size_t *n);

/*
 * Set how many partitions this router has. The group is asked for unassigned partitions only if others
 * remain.
 */
void locator_set_assigned(struct locator *locator, int n);

/* A partition that is assigned to no member of the group. */
struct locator_unassigned {
        int32_t partition;
        int64_t waiting; /* records to route; 0 also when unknown */
};

/* The log of a partition. */
struct locator_log {
        int has_leader;
        int64_t end; /* the last stable offset; -1: unknown */
};

/* The findings of the last look. */
struct locator_view {
        uint64_t number;          /* of the look; 0: none yet */
        int32_t n_partitions;     /* of the topic; -1: unknown yet */
        struct locator_log *logs; /* of partitions 0 to n_logs - 1 */
        size_t n_logs;
        struct locator_unassigned *unassigned;
        size_t n_unassigned;
        int n_looks; /* consecutive looks that found unassigned partitions */
};

/* Copy the view; free it with locator_view_clear(). */
void locator_view(struct locator *locator, struct locator_view *view);
void locator_view_clear(struct locator_view *view);

#endif
