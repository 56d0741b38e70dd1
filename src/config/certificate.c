#include "config/certificate.h"

#include <arpa/inet.h>
#include <dirent.h>
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
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/unit.h"
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
                (void)error_set(error, "cannot open %s: %s%s", path, strerror(errno),
                                unit_remedy(path, errno));
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

/* Return the place in its file of the certificate to which the key belongs, from 1, or 0. */
static int
find_place(const struct certificate *certificate)
{
        int n = sk_X509_num(certificate->chain), place = 0;

        if (X509_check_private_key(certificate->leaf, certificate->key) == 1)
                place = 1;
        for (int i = 0; i < n && place == 0; i++) {
                if (X509_check_private_key(sk_X509_value(certificate->chain, i), certificate->key) == 1)
                        place = i + 2;
        }
        ERR_clear_error();
        return place;
}

int
certificate_read_key(struct certificate *certificate, const char *path, struct error *error)
{
        int asked = 0, place;
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
                return error_set(error,
                                 "%s is protected by a passphrase; remove it: openssl pkey -in %s -out FILE",
                                 path, path);
        if (certificate->key == NULL)
                return error_set(error, "%s contains no private key in PEM", path);
        place = find_place(certificate);
        if (place > 1)
                return error_set(error,
                                 "%s does not belong to the first certificate in tls_certificate_file, but "
                                 "to certificate %d, which must be the first",
                                 path, place);
        return place == 1
                   ? 0
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

/* A filter for scandir(): the hash of a subject, a dot, and a number. */
static int
is_hash(const struct dirent *entry)
{
        size_t len = strspn(entry->d_name, "0123456789abcdef");
        const char *rest = entry->d_name + len;

        return len == 8 && rest[0] == '.' && rest[1] != '\0' &&
               rest[1 + strspn(rest + 1, "0123456789")] == '\0';
}

int
certificate_lacks_hashes(const char *path)
{
        struct dirent **entries = NULL;
        int n = scandir(path, &entries, is_hash, NULL), lacks = n == 0;

        while (n > 0)
                free(entries[--n]);
        free(entries);
        return lacks;
}

int
certificate_fits(const struct certificate *certificate, const char *host)
{
        int fits = X509_check_ip_asc(certificate->leaf, host, 0);

        if (fits == -2) /* it is no address */
                fits = X509_check_host(certificate->leaf, host, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL);
        return fits == 1;
}

/* Write a name or an address as text, "" for other kinds of names. */
static void
write_name(const GENERAL_NAME *name, char *text, size_t size)
{
        int type, len;
        const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
        const unsigned char *bytes;

        text[0] = '\0';
        if (type != GEN_DNS && type != GEN_IPADD)
                return;
        len = ASN1_STRING_length(value);
        bytes = ASN1_STRING_get0_data(value);
        if (type == GEN_DNS)
                (void)snprintf(text, size, "%.*s", len, (const char *)bytes);
        else if (len == 4 || len == 16)
                (void)inet_ntop(len == 4 ? AF_INET : AF_INET6, bytes, text, (socklen_t)size);
}

void
certificate_names(const X509 *certificate, char *text, size_t size)
{
        static const char more[] = ", ...";
        GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
        char name[256];
        size_t len = 0;

        text[0] = '\0';
        for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
                write_name(sk_GENERAL_NAME_value(names, i), name, sizeof(name));
                if (name[0] == '\0')
                        continue;
                if (len + strlen(name) + 2 + sizeof(more) > size) {
                        (void)snprintf(text + len, size - len, "%s", len == 0 ? more + 2 : more);
                        break;
                }
                (void)snprintf(text + len, size - len, "%s%s", len == 0 ? "" : ", ", name);
                len = strlen(text);
        }
        sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
        if (text[0] == '\0')
                (void)snprintf(text, size, "no host");
}

const char *
certificate_doubt(const struct certificate *certificate)
{
        if (X509_check_purpose(certificate->leaf, X509_PURPOSE_SSL_SERVER, 0) != 1)
                return "is not one for servers, by its key usage: clients refuse it; get one for servers";
        if (X509_get_ext_by_NID(certificate->leaf, NID_subject_alt_name, -1) < 0)
                return "has no subjectAltName, so that clients refuse it for any host; get one with the "
                       "webhook's host";
        return NULL;
}

/* Whether a chain is the end of others, from the one with this index. */
static int
ends_with(const STACK_OF(X509) * others, int from, const STACK_OF(X509) * chain)
{
        int n = sk_X509_num(chain);

        if (sk_X509_num(others) != from + n)
                return 0;
        for (int i = 0; i < n; i++) {
                if (X509_cmp(sk_X509_value(others, from + i), sk_X509_value(chain, i)) != 0)
                        return 0;
        }
        return 1;
}

int
certificate_is_same(const struct certificate *a, const struct certificate *b)
{
        return X509_cmp(a->leaf, b->leaf) == 0 && ends_with(a->chain, 0, b->chain);
}

int
certificate_is_sent(const struct certificate *certificate, const STACK_OF(X509) * sent)
{
        return ends_with(sent, 1, certificate->chain) &&
               X509_cmp(sk_X509_value(sent, 0), certificate->leaf) == 0;
}

int64_t
certificate_days_left(const struct certificate *certificate, int64_t now_s)
{
        int64_t left_s = certificate->not_after_s - now_s;

        return left_s < 0 ? -1 : left_s / DAY_S;
}

/* Judge times; what and rest are the words for whose they are. */
static enum certificate_state
judge(const struct certificate *certificate, int64_t now_s, const char *what, const char *rest,
      struct error *error)
{
        int64_t days = certificate_days_left(certificate, now_s);
        char when[CLOCK_RFC3339_SIZE], left[32];

        if (now_s < certificate->not_before_s) {
                (void)error_set(error, "%s is not valid before %s; is this machine's clock right?", what,
                                clock_format_s(certificate->not_before_s, when));
                return CERTIFICATE_UNUSABLE;
        }
        (void)clock_format_s(certificate->not_after_s, when);
        if (days < 0) {
                (void)error_set(error, "%s%s expired at %s; renew it", what, rest, when);
                return CERTIFICATE_UNUSABLE;
        }
        if (days >= ENDING_DAYS)
                return CERTIFICATE_VALID;
        (void)snprintf(left, sizeof(left), "%d day%s", (int)days, days == 1 ? "" : "s");
        (void)error_set(error, "%s%s expires in %s, at %s; renew it", what, rest,
                        days == 0 ? "less than a day" : left, when);
        return CERTIFICATE_ENDING;
}

enum certificate_state
certificate_state(const struct certificate *certificate, int64_t now_s, struct error *error)
{
        return judge(certificate, now_s, "the certificate", ", or one in its chain,", error);
}

enum certificate_state
certificate_single_state(const X509 *single, int64_t now_s, const char *what, struct error *error)
{
        struct certificate times = {.not_after_s = INT64_MAX};

        note_times(&times, single);
        return judge(&times, now_s, what, "", error);
}

enum certificate_state
certificate_chain_state(const STACK_OF(X509) * chain, int64_t now_s, const char *leaf, struct error *error)
{
        int n = sk_X509_num(chain), first = 0;
        char subject[200], what[sizeof(subject) + 40];

        if (n <= 0)
                return CERTIFICATE_VALID;
        for (int i = 1; i < n; i++) {
                if (ASN1_TIME_compare(X509_get0_notAfter(sk_X509_value(chain, i)),
                                      X509_get0_notAfter(sk_X509_value(chain, first))) < 0)
                        first = i;
        }
        (void)X509_NAME_oneline(X509_get_subject_name(sk_X509_value(chain, first)), subject, sizeof(subject));
        (void)snprintf(what, sizeof(what), "the certificate of the authority %s", subject);
        return certificate_single_state(sk_X509_value(chain, first), now_s, first == 0 ? leaf : what, error);
}

enum certificate_state
certificate_authorities_state(const struct certificate *certificate, int64_t now_s, struct error *error)
{
        enum certificate_state worst = CERTIFICATE_VALID;
        int n = sk_X509_num(certificate->authorities), n_unusable = 0;

        for (int i = 0; i < n; i++) {
                struct error its;
                enum certificate_state state;
                char what[64];

                (void)snprintf(what, sizeof(what), "certificate %d, of an authority,", i + 1);
                state =
                    certificate_single_state(sk_X509_value(certificate->authorities, i), now_s, what, &its);
                n_unusable += state == CERTIFICATE_UNUSABLE;
                if (state > worst) {
                        worst = state;
                        *error = its;
                }
        }
        return n_unusable < n && worst == CERTIFICATE_UNUSABLE ? CERTIFICATE_ENDING : worst;
}
