#ifndef MODEL_DIGEST_H
#define MODEL_DIGEST_H

#include <stdint.h>

#include "base/compiler.h"
#include "model/dedup.h"
#include "model/record.h"

/* Computes what the dedup table knows of a record, by SHA-256. For one thread at a time. */
struct digest;

/* NULL when memory or OpenSSL fails. */
struct digest *digest_new(void) MUST_CHECK;
void digest_free(struct digest *digest);

/**
 * digest_identity(digest, record, identity):
 * The first 128 bits over source, delivery-id and gatepost-released. Returns 0, or -1 when OpenSSL fails.
 */
int digest_identity(struct digest *digest, const struct record *record,
                    uint8_t identity[DEDUP_IDENTITY_SIZE]) MUST_CHECK;

/* The first 64 bits over the body. Returns 0, or -1 when OpenSSL fails. */
int digest_body(struct digest *digest, const struct record *record, uint64_t *body) MUST_CHECK;

#endif
