#ifndef SPOOL_KEPT_SEGMENTS_H
#define SPOOL_KEPT_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/log_flood.h"
#include "spool/segment_drain.h"

/*
 * The segments that a drain has left behind, to be tried again later: because records failed, for example
 * those of a partition without a leader, or because it cannot be drained at all. Counts the records that
 * Kafka refuses in them. Zero-initialise it, and set stats. For one thread.
 */
struct kept_segments {
        struct kept_segment *items; /* by number, ascending */
        size_t n;
        struct spool_stats *stats;
        struct log_flood left_behind;
};

struct kept_segment {
        uint64_t number;
        struct segment_drain *segment; /* NULL: it could not be read */
        int64_t retry_ms;              /* monotonic */
        int has_failed;                /* records failed, and are tried again soon */
        int is_counted;                /* its records are in the count of those in the spool */
        int64_t oldest_ms;             /* reception of the oldest record that is left; 0: not known */
};

/* Free the segments, and log what has not been logged yet. */
void kept_segments_clear(struct kept_segments *kept);

/*
 * Keep a segment, which may be NULL, to be tried again, and log why it stays. Without a reason, records of it
 * have failed. One that is unreadable is tried again after 10 s, and then twice as long, up to 10 minutes.
 */
void kept_segments_add(struct kept_segments *kept, uint64_t number, struct segment_drain *segment,
                       int is_counted, const char *reason);

/* Return whether a segment is kept, and move it out into *found. */
int kept_segments_take(struct kept_segments *kept, uint64_t number, struct kept_segment *found);

/* A choice among the segments in the directory. */
struct kept_choice {
        uint64_t fresh; /* the first that is not kept; 0: none */
        uint64_t due;   /* of those to be tried again now, the one that has waited longest; 0: none */
        size_t n_failed;
        size_t n_others;   /* that cannot be drained at all */
        int64_t oldest_ms; /* reception of the oldest record in those that are kept; 0: not known */
};

/*
 * Choose among the segments of a listing with numbers below the limit, without the one that is being
 * drained.
 */
void kept_segments_choose(const struct kept_segments *kept, const struct spool_listing *listing,
                          uint64_t limit, uint64_t drained, struct kept_choice *choice);

#endif
