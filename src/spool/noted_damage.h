#ifndef SPOOL_NOTED_DAMAGE_H
#define SPOOL_NOTED_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "metrics/spool_stats.h"
#include "spool/segment.h"

/*
 * The segments of a spool that are damaged or end in an unfinished write, and how much of each was found
 * unreadable. A segment is read several times, and a disk may lose more of it at any time: each loss is
 * logged and counted once. Zero-initialise it. For one thread.
 */
struct noted_damage {
        struct noted_damage_segment {
                uint64_t number;
                uint64_t damaged_bytes, torn_bytes;
        } * segments;
        size_t n;
};

void noted_damage_clear(struct noted_damage *noted);

/* Log and count what is unreadable in a segment, and log an unfinished write; only what is news. */
void noted_damage_note(struct noted_damage *noted, uint64_t number, const struct segment_summary *summary,
                       struct spool_stats *stats);

/* The segment is not in the spool any more. */
void noted_damage_forget(struct noted_damage *noted, uint64_t number);

#endif
