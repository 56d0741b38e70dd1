#ifndef MODEL_REPLAY_H
#define MODEL_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/delivery.h"

/*
 * The signatures accepted lately, each with its delivery-id. The delivery-id is not covered by the signature, so one
 * captured delivery can be sent again under a new id; this notices it. Best effort: it forgets the oldest when it is
 * full, and it knows of one process only. Nothing expires by age: a reload may raise the tolerance and make old
 * signatures fresh again. For one thread at a time.
 */
struct replay;

/* Remembers at most max_entries signatures, about 110 bytes each, taken as they are needed. NULL when memory fails. */
struct replay *replay_new(size_t max_entries) MUST_CHECK;
void replay_free(struct replay *replay);

enum replay_verdict {
        REPLAY_NONE,      /* the signature is new, or known under this delivery-id: replay_end() follows */
        REPLAY_FOUND,     /* it was accepted under another one */
        REPLAY_UNDECIDED, /* it came under another one, of which it is not known yet whether it is accepted */
};

/**
 * replay_begin(replay, source_name, signature, delivery_id, original):
 * A delivery is about to be stored. Unless the verdict is REPLAY_NONE, original is the delivery-id that was first. When memory
 * fails the verdict is REPLAY_NONE, too.
 */
enum replay_verdict replay_begin(struct replay *replay, const char *source_name,
                                 const uint8_t signature[SIGNATURE_SIZE], const char *delivery_id,
                                 char original[DELIVERY_ID_MAX + 1]);

/* One delivery for which replay_begin() said REPLAY_NONE was stored, or may have been; or it certainly was not. */
void replay_end(struct replay *replay, const char *source_name, const uint8_t signature[SIGNATURE_SIZE],
                const char *delivery_id, int may_be_stored);

#endif
