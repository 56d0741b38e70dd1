#ifndef MODEL_REPLAY_H
#define MODEL_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/delivery.h"

/*
 * The signatures accepted last, each with its delivery-id. Signatures do not cover the delivery-id, so a
 * captured delivery can be replayed under a new one, which this detects. It is best effort: it belongs to one
 * process and forgets the oldest signature when it is full. Nothing expires by age, because a reload may
 * raise the tolerance and make old signatures fresh again. For one thread at a time.
 */
struct replay;

/*
 * Make room for at most max_entries signatures of about 110 bytes, allocated as needed. Return NULL when out
 * of memory.
 */
struct replay *replay_new(size_t max_entries) MUST_CHECK;
void replay_free(struct replay *replay);

enum replay_verdict {
        REPLAY_NONE,      /* new, or known with this delivery-id; the caller must call replay_end() */
        REPLAY_FOUND,     /* accepted with another delivery-id */
        REPLAY_UNDECIDED, /* received with another delivery-id, which may still be refused */
};

/**
 * replay_begin(replay, source_name, signature, delivery_id, original):
 * Look up a delivery before storing it. Unless the verdict is REPLAY_NONE, original is the first delivery-id.
 * When out of memory, return REPLAY_NONE.
 */
enum replay_verdict replay_begin(struct replay *replay, const char *source_name,
                                 const uint8_t signature[SIGNATURE_SIZE], const char *delivery_id,
                                 char original[DELIVERY_ID_MAX + 1]);

/*
 * Report whether a delivery for which replay_begin() returned REPLAY_NONE may have been stored, or certainly
 * was not.
 */
void replay_end(struct replay *replay, const char *source_name, const uint8_t signature[SIGNATURE_SIZE],
                const char *delivery_id, int may_be_stored);

#endif
