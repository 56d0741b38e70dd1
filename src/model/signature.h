#ifndef MODEL_SIGNATURE_H
#define MODEL_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define SIGNATURE_SIZE 32       /* bytes of an HMAC-SHA256 */
#define SIGNATURE_HEADER_LEN 71 /* "sha256=" and 64 hexadecimal digits */
#define SIGNATURE_SECRET_MIN 16 /* bytes; a shorter secret is refused */

/* A shared secret, made ready for HMAC-SHA256. May be used by several threads at once. */
struct signature_key;

/**
 * signature_key_new(secret, len):
 * The key for a secret of len bytes; the secret is not kept. Returns NULL when memory or OpenSSL fails.
 */
struct signature_key *signature_key_new(const void *secret, size_t len) MUST_CHECK;
void signature_key_free(struct signature_key *key);

/**
 * signature_compute(key, timestamp, body, len, signature):
 * HMAC-SHA256 of "{timestamp}.{body}", as the service signs. Returns 0, or -1 when memory or OpenSSL fails.
 */
int signature_compute(const struct signature_key *key, const char *timestamp, const void *body, size_t len,
                      uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/* HMAC-SHA256 of head and then body, of which head is not what the service signs. Returns 0, or -1 as above. */
int signature_sign(const struct signature_key *key, const void *head, size_t head_len, const void *body,
                   size_t len, uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/**
 * signature_verify(keys, n_keys, timestamp, body, len, signature):
 * Whether the signature is right under one of the keys. Compares in constant time and tries all keys whatever the
 * outcome. Returns 1, 0, or -1 when memory or OpenSSL fails.
 */
int signature_verify(struct signature_key *const *keys, size_t n_keys, const char *timestamp,
                     const void *body, size_t len, const uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/**
 * signature_matches(key, head, head_len, body, len, signature):
 * Whether the signature is the HMAC-SHA256 of other bytes, head and then body; for telling what a sender does wrong.
 * Compares in constant time. Returns 1, 0, or -1 when memory or OpenSSL fails.
 */
int signature_matches(const struct signature_key *key, const void *head, size_t head_len, const void *body,
                      size_t len, const uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/**
 * signature_parse(text, len, signature):
 * Read "sha256=" and 64 lowercase hexadecimal digits. Returns 0, or -1 for anything else.
 */
int signature_parse(const char *text, size_t len, uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/* Write "sha256=<hex>" and a NUL. */
void signature_format(const uint8_t signature[SIGNATURE_SIZE], char text[SIGNATURE_HEADER_LEN + 1]);

#endif
