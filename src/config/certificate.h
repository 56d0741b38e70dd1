#ifndef CONFIG_CERTIFICATE_H
#define CONFIG_CERTIFICATE_H

#include <stdint.h>

#include <openssl/x509.h>

#include "base/compiler.h"
#include "base/error.h"

/* What TLS is spoken with: read once, when the configuration is, so that what was checked is what is used. */
struct certificate {
        X509 *leaf;
        STACK_OF(X509) * chain; /* what stands after it in the file, in that order */
        EVP_PKEY *key;
        STACK_OF(X509) * authorities; /* that sign the certificates of clients; NULL: clients need none */
        int64_t not_before_s; /* since the epoch; between both, the leaf and all of the chain are valid */
        int64_t not_after_s;
};

/**
 * certificate_read(path, error):
 * Read a certificate and those after it, all in PEM. Returns it, without a key, or NULL with the reason.
 */
struct certificate *certificate_read(const char *path, struct error *error) MUST_CHECK;

/* NULL is harmless. */
void certificate_free(struct certificate *certificate);

/**
 * certificate_read_key(certificate, path, error):
 * Read the private key, in PEM without a passphrase, from a file that others may not read (secrets.h). Returns 0, or -1
 * with the reason; one is that it is the key of another certificate.
 */
int certificate_read_key(struct certificate *certificate, const char *path, struct error *error) MUST_CHECK;

/* Read the authorities of clients, one PEM certificate at least. Returns 0, or -1 with the reason. */
int certificate_read_authorities(struct certificate *certificate, const char *path,
                                 struct error *error) MUST_CHECK;

/* Whether two have the same leaf and the same chain. */
int certificate_is_same(const struct certificate *a, const struct certificate *b);

/* How a certificate stands at a time. */
enum certificate_state {
        CERTIFICATE_VALID,
        CERTIFICATE_ENDING,   /* valid for less than 30 days more */
        CERTIFICATE_UNUSABLE, /* expired, or not valid yet */
};

/* What is not CERTIFICATE_VALID is told in words in error. */
enum certificate_state certificate_state(const struct certificate *certificate, int64_t now_s,
                                         struct error *error);

/* Whole days from a time until it is no longer valid; below 0 when it is not. */
int64_t certificate_days_left(const struct certificate *certificate, int64_t now_s);

#endif
