#ifndef SPOOL_SEGMENT_PLACES_H
#define SPOOL_SEGMENT_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "spool/segment.h"

/* What became of a record. */
enum fate { FATE_UNKNOWN, FATE_SENT, FATE_ACKNOWLEDGED, FATE_REFUSED };

/*
 * A record, known by its place: a failing disk may read another number of records the next time. In 8 bytes,
 * since all records of the segments that stay are remembered.
 */
struct segment_place {
        uint64_t offset : 62;
        enum fate fate : 2;
};

/* The records of a segment, by offset. Zero-initialise it. */
struct segment_places {
        struct segment_place *items;
        size_t n;
};

/* Read a segment to its end, and list its records. Return 0, or -1, with no list, if memory fails. */
int segment_places_read(struct segment_places *places, struct segment_reader *reader) MUST_CHECK;

/* Replace a list by a newer one, which is emptied; keep the fates of the records that are in both. */
void segment_places_replace(struct segment_places *places, struct segment_places *newer);

void segment_places_free(struct segment_places *places);

/* Return the number of records that Kafka does not have. */
size_t segment_places_left(const struct segment_places *places);

/* Replace a fate by FATE_UNKNOWN. Return the number of records that had it. */
size_t segment_places_reset(struct segment_places *places, enum fate fate);

#endif
