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

/*
 * A delivery is on its way: replay_check() has remembered its signature under its delivery-id. One of these follows:
 * replay_accept() when it was accepted, replay_drop() when it is certain that it was not. Of one that may have been accepted
 * nothing is said: it stays remembered.
 */
void replay_accept(struct replay *replay, const char *source_name, const uint8_t signature[SIGNATURE_SIZE],
                   const char *delivery_id);
void replay_drop(struct replay *replay, const char *source_name, const uint8_t signature[SIGNATURE_SIZE],
                 const char *delivery_id);

/**
 * replay_check(replay, source_name, signature, delivery_id, original):
 * When the signature was accepted for this source under another delivery-id, write that id to original and return 1. Else remember
 * it and return 0; also when memory fails.
 */
int replay_check(struct replay *replay, const char *source_name, const uint8_t signature[SIGNATURE_SIZE],
                 const char *delivery_id, char original[DELIVERY_ID_MAX + 1]);

#endif
