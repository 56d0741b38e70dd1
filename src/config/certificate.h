#ifndef CONFIG_CERTIFICATE_H
#define CONFIG_CERTIFICATE_H

#include <stdint.h>
#include <sys/stat.h>

#include <openssl/x509.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * The certificate for TLS and its key. Read once, with the configuration, so that the files used are the
 * files checked.
 */
struct certificate {
        X509 *leaf;
        STACK_OF(X509) * chain; /* the certificates after it in the file, in order */
        EVP_PKEY *key;
        STACK_OF(X509) * authorities; /* for client certificates; NULL: clients need none */
        int64_t not_before_s;         /* since the epoch; from here to not_after_s leaf and chain are valid */
        int64_t not_after_s;
        struct stat leaf_st; /* of their files before they were read */
        struct stat key_st;
        struct stat authorities_st;
};

/**
 * certificate_read(path, error):
 * Read a certificate and its chain, in PEM. Return it, without a key, or NULL with the reason.
 */
struct certificate *certificate_read(const char *path, struct error *error) MUST_CHECK;

/* NULL is harmless. */
void certificate_free(struct certificate *certificate);

/**
 * certificate_read_key(certificate, path, error):
 * Read the private key, in PEM without a passphrase, from a file that others may not read (secrets.h). Return
 * 0, or -1 with the reason, for example that the key belongs to another certificate.
 */
int certificate_read_key(struct certificate *certificate, const char *path, struct error *error) MUST_CHECK;

/*
 * Read the authorities for client certificates: at least one certificate in PEM. Return 0, or -1 with the
 * reason.
 */
int certificate_read_authorities(struct certificate *certificate, const char *path,
                                 struct error *error) MUST_CHECK;

/* Check that a file holds certificates of authorities as above, without keeping them. */
int certificate_check_authorities(const char *path, struct error *error) MUST_CHECK;

/* Return whether a certificate stands alone and is not self-signed: clients may lack an intermediate one. */
int certificate_lacks_chain(const struct certificate *certificate);

/* Return whether two certificates have the same leaf and the same chain. */
int certificate_is_same(const struct certificate *a, const struct certificate *b);

enum certificate_state {
        CERTIFICATE_VALID,
        CERTIFICATE_ENDING,   /* expires in less than 30 days */
        CERTIFICATE_UNUSABLE, /* expired, or not valid yet */
};

/* Return the state at a time. Set error to the reason unless it is CERTIFICATE_VALID. */
enum certificate_state certificate_state(const struct certificate *certificate, int64_t now_s,
                                         struct error *error);

/* Return the whole days from a time until the certificate expires; negative if it has expired. */
int64_t certificate_days_left(const struct certificate *certificate, int64_t now_s);

#endif
