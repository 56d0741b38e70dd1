#ifndef ROUTER_POSITION_FINDER_H
#define ROUTER_POSITION_FINDER_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "router/position.h"

/*
 * Finds positions in a thread of its own, so that partitions whose leader does not answer do not delay
 * others. Every five seconds it also finds the partitions without a leader, the ends of the logs, and the
 * partitions that are assigned to no member of the group. Calls are for one thread, the router's.
 */
struct position_finder;

/* looks: whether to look around every five seconds. Returns NULL with the reason. */
struct position_finder *position_finder_new(const struct config *config, const char *bootstrap, int looks,
                                            struct error *error) MUST_CHECK;

/* Wait for the thread, for up to some seconds, and free. NULL is harmless. */
void position_finder_free(struct position_finder *finder);

/* Whether an answer is pending or ready: then no further question can be asked. */
int position_finder_is_busy(struct position_finder *finder);

/* Ask for n positions, at least one. */
void position_finder_ask(struct position_finder *finder, const struct position_question *questions, size_t n);

/**
 * position_finder_take(finder, n):
 * Return the n answers to the last questions, which the caller frees; NULL while there are none.
 */
struct position *position_finder_take(struct position_finder *finder, size_t *n);

/*
 * Set how many partitions this router has. The group is asked for unassigned partitions only if others
 * remain.
 */
void position_finder_set_assigned(struct position_finder *finder, int n);

/* A partition that is assigned to no member of the group. */
struct unassigned_partition {
        int32_t partition;
        int64_t waiting; /* records to route; 0 also when unknown */
};

/* The log of a partition. */
struct partition_log {
        int has_leader;
        int64_t end; /* the last stable offset; -1: unknown */
};

/* The findings of the last look. */
struct topic_view {
        uint64_t number;            /* of the look; 0: none yet */
        int32_t n_partitions;       /* of the topic; -1: unknown yet */
        struct partition_log *logs; /* of partitions 0 to n_logs - 1 */
        size_t n_logs;
        struct unassigned_partition *unassigned;
        size_t n_unassigned;
        int n_looks; /* consecutive looks that found unassigned partitions */
};

/* Copy the view; free it with topic_view_clear(). */
void position_finder_view(struct position_finder *finder, struct topic_view *view);
void topic_view_clear(struct topic_view *view);

#endif
