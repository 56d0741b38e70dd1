#ifndef MODEL_RELEASE_H
#define MODEL_RELEASE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "model/record.h"

/*
 * A release: a quarantined record that is appended to `deliveries` again, as a delivery of its own. It keeps
 * key, value and headers, and gatepost-released names the quarantined record. That is part of a delivery's
 * identity, so each quarantined record is routed once, however often it is released.
 */

/* The ID of a quarantined record: its partition and offset in `quarantine`, written 2-17. */
struct release_id {
        int32_t partition;
        int64_t offset;
};

#define RELEASE_ID_SIZE 32

/* Read an ID. Return 0, or -1 if it is not valid. Leading zeros are not: each record has one ID. */
int release_id_parse(struct span text, struct release_id *id) MUST_CHECK;

/* Read an ID from headers with a partition and an offset. Return 0, or -1 if they are not valid. */
int release_place_parse(struct span partition, struct span offset, struct release_id *place) MUST_CHECK;

/* Write an ID. Return text. */
char *release_id_format(const struct release_id *id, char text[RELEASE_ID_SIZE]);

/* Compare by partition and offset, for qsort(). */
int release_id_compare(const struct release_id *a, const struct release_id *b);

/* Return the delivery-id in an event's ce_id: all of it, without the dot and the ID of a release. */
struct span release_delivery_id(struct span event_id);

/**
 * release_keeps_header(name):
 * Return whether a release keeps a header of the quarantined record. It drops gatepost-replay-of, because an
 * administrator has decided, the headers about the quarantine, and an earlier gatepost-released.
 */
int release_keeps_header(const char *name);

#endif
