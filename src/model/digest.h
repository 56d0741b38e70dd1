#ifndef MODEL_DIGEST_H
#define MODEL_DIGEST_H

#include <stdint.h>

#include "base/compiler.h"
#include "dedup/dedup.h"
#include "model/record.h"

/*
 * Digests of records: identities and body digests for the dedup table, and fingerprints for the audit, which
 * compares the published records with the expected ones. For one thread at a time.
 *
 * The values are Poly1305 (RFC 8439) under a key that nobody else knows, and that lives as long as the dedup
 * tables with them. Collisions of identities have a probability of at most 2^-90, even for
 * chosen records. Poly1305 takes a third of the time of SHA-256. Values of two digests are not comparable. If
 * OpenSSL has no Poly1305, as in FIPS mode, HMAC-SHA256 replaces it, truncated to 128 bits.
 */
struct digest;

#define DIGEST_KEY_SIZE 32

/*
 * Create digests under a secret key, or a random one if it is NULL. Return NULL if memory or OpenSSL fails.
 */
struct digest *digest_new(const uint8_t *key) MUST_CHECK;
void digest_free(struct digest *digest);

/**
 * digest_identity(digest, record, identity):
 * Write 128 bits over source, delivery-id and gatepost-released. Return 0, or -1 if OpenSSL fails.
 */
int digest_identity(struct digest *digest, const struct record *record,
                    uint8_t identity[DEDUP_IDENTITY_SIZE]) MUST_CHECK;

/**
 * digest_marked(digest, record, mark, body, identity):
 * Write an identity for a record that must not have the one above: 128 bits over the same, a mark, and the
 * digest of its body. Return 0, or -1 if OpenSSL fails.
 */
int digest_marked(struct digest *digest, const struct record *record, const char *mark, uint64_t body,
                  uint8_t identity[DEDUP_IDENTITY_SIZE]) MUST_CHECK;

/* Write 64 bits over the body, to distinguish bodies of one identity. Return 0, or -1 if OpenSSL fails. */
int digest_body(struct digest *digest, const struct record *record, uint64_t *body) MUST_CHECK;

#define DIGEST_FINGERPRINT_SIZE 16

/**
 * digest_begin(digest, topic, key, value), digest_header(digest, name, value),
 * digest_end(digest, fingerprint):
 * Compute the first 128 bits of SHA-256 over a whole record with its headers in order, except
 * gatepost-detail, whose words may change from one version to the next. A null key, value or header value
 * counts as empty. Each function returns 0, or -1 if OpenSSL fails.
 */
int digest_begin(struct digest *digest, const char *topic, struct span key, struct span value) MUST_CHECK;
int digest_header(struct digest *digest, const char *name, struct span value) MUST_CHECK;
int digest_end(struct digest *digest, uint8_t fingerprint[DIGEST_FINGERPRINT_SIZE]) MUST_CHECK;

#endif
