#ifndef SPOOL_SEGMENT_WRITER_H
#define SPOOL_SEGMENT_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/compiler.h"
#include "metrics/spool_stats.h"
#include "spool/segment.h"
#include "spool/spool_directory.h"

/*
 * Writes and syncs segments, one after the other. After a failed write or sync it leaves the segment as it is
 * and begins another one, because a second sync could succeed although nothing has reached the disk. For one
 * thread, except where another rule is given.
 */
struct segment_writer;

/* A record to be written, in a list. */
struct segment_item {
        STAILQ_ENTRY(segment_item) entry;
        struct segment_record record;
};

STAILQ_HEAD(segment_items, segment_item);

/* Records that are written and synced together. */
struct segment_group {
        struct segment_items items;
        size_t n;
        uint64_t bytes; /* sum of segment_record_size() */
};

/* The first segment has the number `first`. directory and stats outlive the writer. */
struct segment_writer *segment_writer_new(const struct spool_directory *directory, struct spool_stats *stats,
                                          uint64_t first);

/* End the segment that is being written. NULL is harmless. */
void segment_writer_free(struct segment_writer *writer);

/*
 * Write a group to the segment, or to a new one when it is full. Return 0 when all of it is on the disk, or
 * -1 after logging and counting the failure; then some of it may be on the disk. An empty group only tries:
 * whether a segment can be begun and synced, with as much room as was lacking.
 */
int segment_writer_store(struct segment_writer *writer, const struct segment_group *group) MUST_CHECK;

/* End the segment that is being written, if there is one. */
void segment_writer_end(struct segment_writer *writer);

/* Return the number below which all segments have ended; they are not written any more. Any thread. */
uint64_t segment_writer_limit(const struct segment_writer *writer);

/* Whether it has ended this segment, with all of it synced. Any thread. */
int segment_writer_has_sealed(struct segment_writer *writer, uint64_t number);

/* Return the number of the segment that is being written; 0: none. Any thread. */
uint64_t segment_writer_number(const struct segment_writer *writer);

#endif
