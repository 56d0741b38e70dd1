#ifndef MODEL_DIGEST_H
#define MODEL_DIGEST_H

#include <stdint.h>

#include "base/compiler.h"
#include "model/dedup.h"
#include "model/record.h"

/*
 * What is remembered of records in their stead: what the dedup table knows, and fingerprints for comparing what was
 * published with what had to be. For one thread at a time.
 *
 * The dedup table lives no longer than its digest, so it knows records by Poly1305 (RFC 8439) under a key that the
 * digest has made up and shows nobody: two that are the same there can only be met by chance, 1 in 2^90 or less for an
 * identity, whoever chose them. That takes a third of the time of SHA-256. Values of two digests cannot be compared.
 * Where OpenSSL has no Poly1305, as in FIPS mode, HMAC-SHA256 takes its place, cut off at 128 bits.
 */
struct digest;

/* NULL when memory or OpenSSL fails. */
struct digest *digest_new(void) MUST_CHECK;
void digest_free(struct digest *digest);

/**
 * digest_identity(digest, record, identity):
 * 128 bits over source, delivery-id and gatepost-released. Returns 0, or -1 when OpenSSL fails.
 */
int digest_identity(struct digest *digest, const struct record *record,
                    uint8_t identity[DEDUP_IDENTITY_SIZE]) MUST_CHECK;

/**
 * digest_marked(digest, record, mark, body, identity):
 * An identity for a record that must not have the one above: 128 bits over the same, a word that says why, and the digest
 * of its body. Returns 0, or -1 when OpenSSL fails.
 */
int digest_marked(struct digest *digest, const struct record *record, const char *mark, uint64_t body,
                  uint8_t identity[DEDUP_IDENTITY_SIZE]) MUST_CHECK;

/* 64 bits over the body, for telling bodies of one identity apart. Returns 0, or -1 when OpenSSL fails. */
int digest_body(struct digest *digest, const struct record *record, uint64_t *body) MUST_CHECK;

#define DIGEST_FINGERPRINT_SIZE 16

/**
 * digest_begin(digest, topic, key, value), digest_header(digest, name, value), digest_end(digest, fingerprint):
 * The first 128 bits of SHA-256 over a whole record, with its headers in their order. A null key, value or header value counts as an
 * empty one. Each returns 0, or -1 when OpenSSL fails.
 */
int digest_begin(struct digest *digest, const char *topic, struct span key, struct span value) MUST_CHECK;
int digest_header(struct digest *digest, const char *name, struct span value) MUST_CHECK;
int digest_end(struct digest *digest, uint8_t fingerprint[DIGEST_FINGERPRINT_SIZE]) MUST_CHECK;

#endif
