#include "http/tls_log.h"

#include <pthread.h>
#include <string.h>

#include <openssl/err.h>

#include "base/compiler.h"
#include "base/log_flood.h"

#define N_REASONS 32 /* more than clients can cause; what comes beyond is summed up together */

/* Why sessions have failed, each reason with its sum. */
struct failures {
        pthread_mutex_t mutex;
        struct {
                const char *reason; /* NULL: not used yet */
                struct log_flood flood;
        } sums[N_REASONS];
};

static struct failures handshakes = {.mutex = PTHREAD_MUTEX_INITIALIZER},
                       sessions = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The sum for a reason, of which the text is copied nowhere: it must stay. */
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

/* Whether the session was ended by one who has not said a word: a port scan, or a load balancer that looks whether we live. */
static int
is_silent(const SSL *session)
{
        return BIO_number_read(SSL_get_rbio(session)) == 0;
}

/* In OpenSSL's words, which are constants; NULL: there is none. */
static const char *
reason_of(const SSL *session, int in_handshake, unsigned long code)
{
        long verified = SSL_get_verify_result(session);
        const char *reason = ERR_reason_error_string(code);

        if (reason == NULL && (!in_handshake || is_silent(session)))
                return NULL;
        if (verified != X509_V_OK)
                return X509_verify_cert_error_string(verified);
        return reason == NULL ? "the client has gone" : reason;
}

void
tls_log_end(const SSL *session, int in_handshake, unsigned long code, const struct address *client)
{
        const char *reason = reason_of(session, in_handshake, code);
        char quoted[LOG_QUOTED_SIZE], address[ADDRESS_TEXT_SIZE];

        if (reason == NULL)
                return;
        log_flood(sum_of(in_handshake ? &handshakes : &sessions, reason), LOG_LEVEL_NOTICE,
                  "%s reason=%s last_client=%s",
                  in_handshake ? "TLS handshakes failed" : "TLS sessions broke", log_quote(reason, quoted),
                  address_format(client, address));
}

void
tls_log_timeout(const struct address *client)
{
        static struct log_flood flood;
        char address[ADDRESS_TEXT_SIZE];

        log_flood(&flood, LOG_LEVEL_NOTICE, "TLS handshakes were not done in time last_client=%s",
                  address_format(client, address));
}
