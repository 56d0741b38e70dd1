#ifndef MODEL_RELEASE_H
#define MODEL_RELEASE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "model/record.h"

/*
 * A release: a record of quarantine that is appended to `deliveries` again, as a delivery of its own. It keeps its key, its
 * value and the headers that it came with, and says in gatepost-released which record of quarantine it was. The dedup table
 * takes that into a delivery's identity, so each record of quarantine comes in once, however often it is released.
 */

/* A record of quarantine, by its place there: written 2-17, partition and offset. */
struct release_id {
        int32_t partition;
        int64_t offset;
};

#define RELEASE_ID_SIZE 32

/* Read an ID. Returns 0, or -1 when it is none, leading zeros included: each record has one ID. */
int release_id_parse(struct span text, struct release_id *id) MUST_CHECK;

/* Read a place from the headers that tell its partition and its offset. Returns 0, or -1 when it is none. */
int release_place_parse(struct span partition, struct span offset, struct release_id *place) MUST_CHECK;

/* Write an ID. Returns text. */
char *release_id_format(const struct release_id *id, char text[RELEASE_ID_SIZE]);

/* Which comes first, by partition and offset: negative, 0 or positive, as for qsort(). */
int release_id_compare(const struct release_id *a, const struct release_id *b);

/* The delivery-id in an event's ce_id: what comes before a dot and the ID of a release, or all of it. */
struct span release_delivery_id(struct span event_id);

/**
 * release_keeps_header(name):
 * Whether a header of the record in quarantine goes with it: not gatepost-replay-of, for an admin has looked at it, not
 * why and from where it was quarantined, and not an earlier gatepost-released.
 */
int release_keeps_header(const char *name);

#endif
