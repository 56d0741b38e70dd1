#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <openssl/ssl.h>

#include "base/address.h"
#include "base/compiler.h"
#include "base/error.h"
#include "config/certificate.h"
#include "config/config.h"

/*
 * TLS of the servers of a process: versions 1.2 and 1.3, ciphers with forward secrecy and authenticated
 * encryption only, no compression, no renegotiation, no early data. Sessions are never resumed: deliveries
 * use long-lived connections, so resumption would save little. Ticket keys would have to be rotated to keep
 * past traffic secret, and a ticket would outlive the certificate and the client authorities under which it
 * was issued.
 *
 * Any thread may use it. tls_replace() affects new sessions only.
 */
struct tls;

/* The certificate must have its key. Returns NULL with the reason. */
struct tls *tls_new(const struct certificate *certificate, struct error *error) MUST_CHECK;

/* No server may use it any more; sessions may still be open. NULL is harmless. */
void tls_free(struct tls *tls);

/* Replace the certificate. Returns 0, or -1 with the reason, and keeps the previous one. */
int tls_replace(struct tls *tls, const struct certificate *certificate, struct error *error) MUST_CHECK;

/* Make the server's side of a session, for SSL_free(). Returns NULL when memory fails. */
SSL *tls_session(struct tls *tls) MUST_CHECK;

/*
 * Have tls_log_end() name a PROXY protocol header in place of the first TLS record, which OpenSSL calls a
 * wrong version. The session has its descriptor and has not read from it.
 */
void tls_watch_for_proxy(SSL *session);

/* Send close_notify, once, and only after the handshake. NULL is harmless. */
void tls_say_goodbye(SSL *session);

/**
 * tls_log_end(session, in_handshake, code, client):
 * Log why a session has failed, in its handshake or later, together with others that failed for the same
 * reason. code is OpenSSL's, or 0. A session that was only closed is not logged. Return the reason, a
 * constant, or NULL when nothing was logged.
 */
const char *tls_log_end(const SSL *session, int in_handshake, unsigned long code,
                        const struct address *client);

/* Log that a handshake took longer than handshake_timeout. */
void tls_log_timeout(const struct address *client);

/*
 * Checks of the certificate that reading its files does not make. Both append findings, none without TLS.
 */

/* Check that OpenSSL accepts the certificate and its key, which may be too weak. */
void tls_check_strength(const struct config *config, struct findings *findings);

/* Check that the certificate and its chain are valid now; warn when one of them expires soon. */
void tls_check_dates(const struct config *config, struct findings *findings);

#endif
