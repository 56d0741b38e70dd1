#ifndef SPOOL_SPOOL_DRAIN_H
#define SPOOL_SPOOL_DRAIN_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "metrics/spool_stats.h"
#include "spool/spool_directory.h"
#include "spool/spool_writer.h"

/*
 * Appends the spooled deliveries to Kafka, the oldest first, in a thread of its own with a producer of its
 * own. A segment is deleted when Kafka has acknowledged all of it. After a failure or a crash, records are
 * appended again that Kafka has already; the router drops them as repeats.
 */
struct spool_drain;

/* What the drain asks and tells its owner, from its thread. */
struct spool_drain_owner {
        void *arg;
        int (*may_append)(void *arg);  /* whether Kafka can be reached */
        int (*has_traffic)(void *arg); /* whether other deliveries go to Kafka, which come first */
        void (*answered)(void *arg);   /* Kafka works: it has acknowledged a record, or refused it for good */
};

/**
 * spool_drain_new(directory, writer, stats, config, bootstrap, owner, error):
 * Start the thread. writer is NULL when nothing is written to the directory: the segments may come
 * from another disk, so those with torn bytes are put aside and not deleted. Segments up to the number `old`
 * were written by an earlier process, and are counted before they are drained. All arguments outlive the
 * drain; owner is copied. Return NULL with the reason.
 */
struct spool_drain *spool_drain_new(const struct spool_directory *directory, struct spool_writer *writer,
                                    struct spool_stats *stats, uint64_t old, const struct config *config,
                                    const char *bootstrap, const struct spool_drain_owner *owner,
                                    struct error *error) MUST_CHECK;

/* Stop within some seconds; what Kafka has not acknowledged stays. NULL is harmless. */
void spool_drain_free(struct spool_drain *drain);

/* How far the drain has come. */
enum spool_drain_state {
        SPOOL_DRAIN_WORKING,
        SPOOL_DRAIN_EMPTY, /* no segment is left */
        SPOOL_DRAIN_KEPT,  /* only segments are left that cannot be drained now: refused, or unreadable */
};

/* Any thread. */
enum spool_drain_state spool_drain_state(const struct spool_drain *drain);

/* Copy the reason of the last failed append, or why a segment stays; "" if there is none. Any thread. */
void spool_drain_failure(struct spool_drain *drain, struct error *error);

/*
 * Whether the drain finds out by itself when Kafka works again: it has records in flight, or had a moment
 * ago. It has none while it waits for a slow disk. Any thread.
 */
int spool_drain_is_trying(const struct spool_drain *drain);

/* Return whether the thread makes progress within limit_ms, or waits for the disk. Any thread. */
int spool_drain_is_alive(struct spool_drain *drain, int64_t limit_ms);

#endif
