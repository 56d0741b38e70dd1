#ifndef SPOOL_NOTED_DAMAGE_H
#define SPOOL_NOTED_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "metrics/spool_stats.h"
#include "spool/segment.h"
#include "spool/spool_writer.h"

/*
 * The segments of a spool that are damaged or end in an unfinished write, and how much of each was found
 * unreadable. A segment is read several times, and a disk may lose more of it at any time: each loss is
 * logged and counted once. Bytes that no record shows to be damage are damage nevertheless, and not torn, in
 * a segment that this process has sealed, or that the disk did not return completely before, or that has
 * fewer damaged bytes than before: the record or the seal that showed it may be lost. Zero-initialise it. For
 * one thread.
 */
struct noted_damage {
        const struct spool_writer *writer; /* of this process; NULL: none */
        struct noted_damage_segment {
                uint64_t number;
                uint64_t damaged_bytes, torn_bytes;
                int was_unreadable; /* the disk did not return all of it */
        } * segments;
        size_t n;
};

void noted_damage_clear(struct noted_damage *noted);

/*
 * Log and count what is unreadable in a segment, and log an unfinished write; only what is news. Turn torn
 * bytes of the summary into damaged ones if that is what they are.
 */
void noted_damage_note(struct noted_damage *noted, uint64_t number, struct segment_summary *summary,
                       struct spool_stats *stats);

/*
 * Whether a segment with this summary is put aside rather than deleted: if it is damaged, and, without a
 * writer, if it has torn bytes.
 */
int noted_damage_keeps(const struct noted_damage *noted, const struct segment_summary *summary);

/* The segment is not in the spool any more. */
void noted_damage_forget(struct noted_damage *noted, uint64_t number);

#endif
