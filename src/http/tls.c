#include "http/tls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log_flood.h"
#include "base/mem.h"
#include "http/proxy_protocol.h"

#define SECURITY_LEVEL 2 /* 112 bits and more */
#define N_REASONS 32     /* more than clients can cause; further ones are counted together */

static const char ciphers_1_2[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

/* Lists of groups; the first list that this OpenSSL knows is used. */
static const char *const groups[] = {"X25519MLKEM768:X25519:P-256:P-384", "X25519:P-256:P-384"};

struct tls {
        pthread_mutex_t mutex;
        SSL_CTX *context; /* with a reference of ours, and one of each session */
};

/* Choose http/1.1 if the client offers it; a client that offers only others may still speak it. */
static int
choose_protocol(SSL *session, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                unsigned in_len, void *arg)
{
        static const unsigned char ours[] = "\x08http/1.1";

        (void)session;
        (void)arg;
        if (SSL_select_next_proto((unsigned char **)out, out_len, ours, sizeof(ours) - 1, in, in_len) ==
            OPENSSL_NPN_NEGOTIATED)
                return SSL_TLSEXT_ERR_OK;
        return SSL_TLSEXT_ERR_NOACK;
}

static int
set_groups(SSL_CTX *context)
{
        for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
                if (SSL_CTX_set1_groups_list(context, groups[i]) == 1)
                        return 1;
                ERR_clear_error();
        }
        return 0;
}

/*
 * An unexpected end of the stream is not an error: HTTP's own lengths reveal a truncated message. Without
 * SSL_MODE_AUTO_RETRY, a client that sends only handshake records cannot hold a thread; with read_ahead it
 * still could, since OpenSSL continues while its buffer ends within a record. stream.c relies on the two
 * modes of writing.
 */
static int
set_protocol(SSL_CTX *context)
{
        (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET |
                                               SSL_OP_IGNORE_UNEXPECTED_EOF);
        (void)SSL_CTX_clear_options(context, SSL_OP_LEGACY_SERVER_CONNECT);
        (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        (void)SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
        (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_security_level(context, SECURITY_LEVEL);
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
        return SSL_CTX_set_num_tickets(context, 0) == 1 && SSL_CTX_set_max_early_data(context, 0) == 1 &&
               SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
               SSL_CTX_set_max_proto_version(context, 0) == 1 &&
               SSL_CTX_set_cipher_list(context, ciphers_1_2) == 1 && set_groups(context);
}

/* Send the chain exactly as in the file: OpenSSL must not complete it from the client authorities. */
static int
set_certificate(SSL_CTX *context, const struct certificate *certificate)
{
        (void)SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
        return SSL_CTX_use_certificate(context, certificate->leaf) == 1 &&
               SSL_CTX_set1_chain(context, certificate->chain) == 1 &&
               SSL_CTX_use_PrivateKey(context, certificate->key) == 1;
}

/* Require client certificates that one of the authorities has issued. */
static int
set_authorities(SSL_CTX *context, STACK_OF(X509) * authorities)
{
        X509_STORE *store = SSL_CTX_get_cert_store(context);

        for (int i = 0; i < sk_X509_num(authorities); i++) {
                X509 *authority = sk_X509_value(authorities, i);

                if (X509_STORE_add_cert(store, authority) != 1 ||
                    SSL_CTX_add_client_CA(context, authority) != 1)
                        return 0;
        }
        if (authorities != NULL)
                SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        return 1;
}

/*
 * OpenSSL accepts a key on any curve, but with one that clients do not offer each handshake fails for want of
 * a shared cipher.
 */
static int
check_curve(const struct certificate *certificate, struct error *error)
{
        static const char *const offered[] = {"prime256v1", "secp384r1", "secp521r1"};
        char curve[64] = "unnamed";

        if (EVP_PKEY_is_a(certificate->key, "EC") != 1)
                return 0;
        (void)EVP_PKEY_get_group_name(certificate->key, curve, sizeof(curve), NULL);
        ERR_clear_error();
        for (size_t i = 0; i < ARRAY_LEN(offered); i++) {
                if (strcmp(curve, offered[i]) == 0)
                        return 0;
        }
        return error_set(
            error,
            "its key is on the curve %s, which TLS clients do not offer; get a certificate for a "
            "key on P-256, P-384 or P-521, or for an RSA key",
            curve);
}

/* Returns a failing function's NULL. */
static SSL_CTX *
fail(SSL_CTX *context, struct error *error, const char *what)
{
        const char *why = ERR_reason_error_string(ERR_peek_error());

        (void)error_set(error, "OpenSSL does not take %s: %s", what, why == NULL ? "out of memory" : why);
        ERR_clear_error();
        SSL_CTX_free(context);
        return NULL;
}

static SSL_CTX *
make_context(const struct certificate *certificate, struct error *error)
{
        SSL_CTX *context;

        if (check_curve(certificate, error) != 0)
                return NULL;
        ERR_clear_error();
        context = SSL_CTX_new(TLS_server_method());
        if (context == NULL || !set_protocol(context))
                return fail(context, error, "the settings of TLS");
        if (!set_certificate(context, certificate))
                return fail(context, error, "the certificate, its chain or its key");
        if (!set_authorities(context, certificate->authorities))
                return fail(context, error, "the authorities of clients");
        return context;
}

struct tls *
tls_new(const struct certificate *certificate, struct error *error)
{
        SSL_CTX *context = make_context(certificate, error);
        struct tls *tls;

        if (context == NULL)
                return NULL;
        tls = mem_alloc(sizeof(*tls));
        pthread_mutex_init(&tls->mutex, NULL);
        tls->context = context;
        return tls;
}

void
tls_free(struct tls *tls)
{
        if (tls == NULL)
                return;
        SSL_CTX_free(tls->context);
        pthread_mutex_destroy(&tls->mutex);
        free(tls);
}

int
tls_replace(struct tls *tls, const struct certificate *certificate, struct error *error)
{
        SSL_CTX *context = make_context(certificate, error), *before;

        if (context == NULL)
                return -1;
        pthread_mutex_lock(&tls->mutex);
        before = tls->context;
        tls->context = context;
        pthread_mutex_unlock(&tls->mutex);
        SSL_CTX_free(before);
        return 0;
}

SSL *
tls_session(struct tls *tls)
{
        SSL *session;

        pthread_mutex_lock(&tls->mutex);
        session = SSL_new(tls->context);
        pthread_mutex_unlock(&tls->mutex);
        if (session == NULL)
                ERR_clear_error();
        return session;
}

/* A BIO_callback_fn_ex. OpenSSL reads the header of a record first. */
static long
on_first_read(BIO *bio, int operation, const char *data, size_t size, int unused, long unused_too, int result,
              size_t *n_read)
{
        (void)size;
        (void)unused;
        (void)unused_too;
        if (operation != (BIO_CB_READ | BIO_CB_RETURN) || result <= 0)
                return result;
        if (*n_read >= PROXY_BEGIN_LEN && proxy_header_begins(data))
                (void)SSL_set_app_data((SSL *)(void *)BIO_get_callback_arg(bio), PROXY_UNEXPECTED);
        BIO_set_callback_ex(bio, NULL);
        return result;
}

void
tls_watch_for_proxy(SSL *session)
{
        BIO *bio = SSL_get_rbio(session);

        BIO_set_callback_arg(bio, (char *)session);
        BIO_set_callback_ex(bio, on_first_read);
}

void
tls_say_goodbye(SSL *session)
{
        if (session == NULL || !SSL_is_init_finished(session) ||
            (SSL_get_shutdown(session) & SSL_SENT_SHUTDOWN))
                return;
        ERR_clear_error();
        (void)SSL_shutdown(session); /* do not wait for the client's close_notify */
        ERR_clear_error();
}

/* The reasons for failed sessions, each logged and counted by itself. */
struct failures {
        pthread_mutex_t mutex;
        struct {
                const char *reason; /* NULL: not used yet */
                struct log_flood flood;
        } sums[N_REASONS];
};

static struct failures handshakes = {.mutex = PTHREAD_MUTEX_INITIALIZER},
                       sessions = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Return the flood counter of a reason, which is a constant. */
static struct log_flood *
sum_of(struct failures *failures, const char *reason)
{
        size_t i = 0;

        pthread_mutex_lock(&failures->mutex);
        while (i < N_REASONS - 1 && failures->sums[i].reason != NULL &&
               strcmp(failures->sums[i].reason, reason) != 0)
                i++;
        if (failures->sums[i].reason == NULL)
                failures->sums[i].reason = reason;
        pthread_mutex_unlock(&failures->mutex);
        return &failures->sums[i].flood;
}

/* Returns 1 when the client sent nothing, as port scans and health checks of load balancers do. */
static int
is_silent(const SSL *session)
{
        return BIO_number_read(SSL_get_rbio(session)) == 0;
}

/* Return the text for the reason, a constant; NULL: the session was only closed. */
static const char *
reason_of(const SSL *session, int in_handshake, unsigned long code)
{
        long verified = SSL_get_verify_result(session);
        const char *reason = ERR_reason_error_string(code);

        if (SSL_get_app_data(session) != NULL)
                return SSL_get_app_data(session);
        if (reason == NULL && (!in_handshake || is_silent(session)))
                return NULL;
        if (verified != X509_V_OK)
                return X509_verify_cert_error_string(verified);
        if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST)
                return "a client spoke HTTP without TLS; its URL, or the proxy before this receiver, must "
                       "use https";
        return reason == NULL ? "the client has gone" : reason;
}

const char *
tls_log_end(const SSL *session, int in_handshake, unsigned long code, const struct address *client)
{
        const char *reason = reason_of(session, in_handshake, code);
        char quoted[LOG_QUOTED_SIZE], address[ADDRESS_TEXT_SIZE];

        if (reason == NULL)
                return NULL;
        log_flood(sum_of(in_handshake ? &handshakes : &sessions, reason), LOG_LEVEL_NOTICE,
                  "%s reason=%s client=%s", in_handshake ? "TLS handshakes failed" : "TLS sessions broke",
                  log_quote(reason, quoted), address_format(client, address));
        return reason;
}

void
tls_log_timeout(const struct address *client)
{
        static struct log_flood flood;
        char address[ADDRESS_TEXT_SIZE];

        log_flood(&flood, LOG_LEVEL_NOTICE, "TLS handshakes were not done in time client=%s",
                  address_format(client, address));
}

/* Checks at the start */

static struct finding *
add_finding(const struct config *config, enum finding_level level, const struct error *error,
            struct findings *findings)
{
        struct finding *finding =
            findings_add(findings, level, config->file, "tls_certificate_file: %s", error->text);

        finding->line = config_find_line(config, "receiver", "tls_certificate_file");
        return finding;
}

void
tls_check_strength(const struct config *config, struct findings *findings)
{
        struct error error;
        struct tls *tls;

        if (config->certificate == NULL)
                return;
        tls = tls_new(config->certificate, &error);
        if (tls == NULL)
                (void)add_finding(config, FINDING_ERROR, &error, findings);
        tls_free(tls);
}

void
tls_check_dates(const struct config *config, struct findings *findings)
{
        enum certificate_state state;
        struct error error;

        if (config->certificate == NULL)
                return;
        state = certificate_state(config->certificate, clock_now_ms() / 1000, &error);
        if (state != CERTIFICATE_VALID)
                finding_set_remedy(add_finding(config,
                                               state == CERTIFICATE_ENDING ? FINDING_WARNING : FINDING_ERROR,
                                               &error, findings),
                                   "renew it, or correct this machine's clock");
}
