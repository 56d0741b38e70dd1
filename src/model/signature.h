#ifndef MODEL_SIGNATURE_H
#define MODEL_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define SIGNATURE_SIZE 32       /* bytes of an HMAC-SHA256 */
#define SIGNATURE_HEADER_LEN 71 /* "sha256=" and 64 hexadecimal digits */
#define SIGNATURE_SECRET_MIN 16 /* bytes; a shorter secret is refused */

/* A shared secret, prepared for HMAC-SHA256. Any number of threads may use it at once. */
struct signature_key;

/**
 * signature_key_new(secret, len):
 * Return the key for a secret of len bytes, without keeping the secret, or NULL if memory or OpenSSL fails.
 */
struct signature_key *signature_key_new(const void *secret, size_t len) MUST_CHECK;
void signature_key_free(struct signature_key *key);

/**
 * signature_compute(key, timestamp, body, len, signature):
 * Compute the HMAC-SHA256 of "{timestamp}.{body}", which the service signs. Return 0, or -1 if memory or
 * OpenSSL fails.
 */
int signature_compute(const struct signature_key *key, const char *timestamp, const void *body, size_t len,
                      uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/* Likewise of head followed by body, for texts that the service does not sign. */
int signature_sign(const struct signature_key *key, const void *head, size_t head_len, const void *body,
                   size_t len, uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/**
 * signature_verify(keys, n_keys, timestamp, body, len, signature):
 * Check whether one of the keys made the signature. Compare in constant time and always try all keys. Return
 * the number of that key, counted from 1; 0; or -1 if memory or OpenSSL fails.
 */
int signature_verify(struct signature_key *const *keys, size_t n_keys, const char *timestamp,
                     const void *body, size_t len, const uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/**
 * signature_matches(key, head, head_len, body, len, signature):
 * Check whether the signature is the HMAC-SHA256 of head followed by body, for finding out what a sender does
 * wrong. Compare in constant time. Return 1, 0, or -1 if memory or OpenSSL fails.
 */
int signature_matches(const struct signature_key *key, const void *head, size_t head_len, const void *body,
                      size_t len, const uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/**
 * signature_parse(text, len, signature):
 * Read "sha256=" and 64 lowercase hexadecimal digits. Return 0, or -1 for anything else.
 */
int signature_parse(const char *text, size_t len, uint8_t signature[SIGNATURE_SIZE]) MUST_CHECK;

/* Write "sha256=<hex>" and a NUL. */
void signature_format(const uint8_t signature[SIGNATURE_SIZE], char text[SIGNATURE_HEADER_LEN + 1]);

#endif
