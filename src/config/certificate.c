#include "config/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/secrets.h"

#define DAY_S 86400
#define ENDING_DAYS 30

/* Open a file for reading, without blocking on a FIFO. */
static FILE *
open_file(const char *path, struct stat *st, struct error *error)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

        if (in == NULL) {
                (void)error_set(error, "cannot open %s: %s", path, strerror(errno));
                if (fd >= 0)
                        (void)close(fd);
                return NULL;
        }
        if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
                return in;
        (void)error_set(error, "%s is not a regular file", path);
        (void)fclose(in);
        return NULL;
}

/* Read all certificates in a file, at least one. */
static STACK_OF(X509) * read_all(const char *path, struct stat *st, struct error *error)
{
        FILE *in = open_file(path, st, error);
        STACK_OF(X509) *all = sk_X509_new_null();
        X509 *one;
        unsigned long why;

        if (in == NULL || all == NULL) {
                if (in != NULL)
                        (void)fclose(in);
                sk_X509_free(all);
                return NULL;
        }
        while ((one = PEM_read_X509(in, NULL, NULL, NULL)) != NULL)
                (void)sk_X509_push(all, one);
        why = ERR_peek_last_error();
        ERR_clear_error();
        (void)fclose(in);
        if (sk_X509_num(all) > 0 && ERR_GET_REASON(why) == PEM_R_NO_START_LINE)
                return all;
        if (sk_X509_num(all) == 0)
                (void)error_set(error, "%s contains no certificate in PEM", path);
        else
                (void)error_set(error, "cannot read certificate %d in %s: %s", sk_X509_num(all) + 1, path,
                                ERR_reason_error_string(why));
        sk_X509_pop_free(all, X509_free);
        return NULL;
}

static int64_t
seconds_of(const ASN1_TIME *when)
{
        struct tm tm;

        return ASN1_TIME_to_tm(when, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

/* Clients verify the whole chain, so the shortest validity counts. */
static void
note_times(struct certificate *certificate, const X509 *one)
{
        int64_t begin = seconds_of(X509_get0_notBefore(one)), end = seconds_of(X509_get0_notAfter(one));

        if (begin > certificate->not_before_s)
                certificate->not_before_s = begin;
        if (end < certificate->not_after_s)
                certificate->not_after_s = end;
}

struct certificate *
certificate_read(const char *path, struct error *error)
{
        struct stat st;
        STACK_OF(X509) *all = read_all(path, &st, error);
        struct certificate *certificate;

        if (all == NULL)
                return NULL;
        certificate = mem_alloc(sizeof(*certificate));
        certificate->leaf_st = st;
        certificate->not_after_s = INT64_MAX;
        for (int i = 0; i < sk_X509_num(all); i++)
                note_times(certificate, sk_X509_value(all, i));
        certificate->leaf = sk_X509_shift(all);
        certificate->chain = all;
        return certificate;
}

void
certificate_free(struct certificate *certificate)
{
        if (certificate == NULL)
                return;
        X509_free(certificate->leaf);
        sk_X509_pop_free(certificate->chain, X509_free);
        sk_X509_pop_free(certificate->authorities, X509_free);
        EVP_PKEY_free(certificate->key);
        free(certificate);
}

/* A pem_password_cb: the daemon has nobody to ask. */
static int
no_passphrase(char *buffer, int size, int for_writing, void *asked)
{
        (void)buffer;
        (void)size;
        (void)for_writing;
        *(int *)asked = 1;
        return -1;
}

int
certificate_read_key(struct certificate *certificate, const char *path, struct error *error)
{
        int asked = 0, fits;
        size_t len;
        char *text = secrets_read(path, 1, &len, &certificate->key_st, error);
        BIO *bio;

        if (text == NULL)
                return -1;
        bio = BIO_new_mem_buf(text, (int)len);
        if (bio != NULL)
                certificate->key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked);
        BIO_free(bio);
        secrets_free(text, len);
        ERR_clear_error();
        if (asked)
                return error_set(error, "%s is protected by a passphrase, which a daemon cannot ask for",
                                 path);
        if (certificate->key == NULL)
                return error_set(error, "%s contains no private key in PEM", path);
        fits = X509_check_private_key(certificate->leaf, certificate->key) == 1;
        ERR_clear_error();
        return fits ? 0
                    : error_set(error, "%s does not belong to the first certificate in tls_certificate_file",
                                path);
}

int
certificate_read_authorities(struct certificate *certificate, const char *path, struct error *error)
{
        certificate->authorities = read_all(path, &certificate->authorities_st, error);
        return certificate->authorities == NULL ? -1 : 0;
}

int
certificate_check_authorities(const char *path, struct error *error)
{
        struct stat st;
        STACK_OF(X509) *all = read_all(path, &st, error);

        sk_X509_pop_free(all, X509_free);
        return all == NULL ? -1 : 0;
}

int
certificate_lacks_chain(const struct certificate *certificate)
{
        return sk_X509_num(certificate->chain) == 0 &&
               X509_NAME_cmp(X509_get_subject_name(certificate->leaf),
                             X509_get_issuer_name(certificate->leaf)) != 0;
}

static int
is_same_chain(const STACK_OF(X509) * a, const STACK_OF(X509) * b)
{
        if (sk_X509_num(a) != sk_X509_num(b))
                return 0;
        for (int i = 0; i < sk_X509_num(a); i++) {
                if (X509_cmp(sk_X509_value(a, i), sk_X509_value(b, i)) != 0)
                        return 0;
        }
        return 1;
}

int
certificate_is_same(const struct certificate *a, const struct certificate *b)
{
        return X509_cmp(a->leaf, b->leaf) == 0 && is_same_chain(a->chain, b->chain);
}

int64_t
certificate_days_left(const struct certificate *certificate, int64_t now_s)
{
        int64_t left_s = certificate->not_after_s - now_s;

        return left_s < 0 ? -1 : left_s / DAY_S;
}

enum certificate_state
certificate_state(const struct certificate *certificate, int64_t now_s, struct error *error)
{
        int64_t days = certificate_days_left(certificate, now_s);
        char when[CLOCK_RFC3339_SIZE];

        if (now_s < certificate->not_before_s) {
                (void)error_set(error, "the certificate is not valid before %s",
                                clock_format_s(certificate->not_before_s, when));
                return CERTIFICATE_UNUSABLE;
        }
        (void)clock_format_s(certificate->not_after_s, when);
        if (days < 0) {
                (void)error_set(error, "the certificate, or one in its chain, expired at %s", when);
                return CERTIFICATE_UNUSABLE;
        }
        if (days >= ENDING_DAYS)
                return CERTIFICATE_VALID;
        (void)error_set(error, "the certificate, or one in its chain, expires at %s", when);
        return CERTIFICATE_ENDING;
}
