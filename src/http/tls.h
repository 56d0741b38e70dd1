#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <openssl/ssl.h>

#include "base/address.h"
#include "base/compiler.h"
#include "base/error.h"
#include "config/certificate.h"

/*
 * How the servers of a process speak TLS: 1.2 and 1.3, forward secret and authenticated ciphers only, no compression, no
 * renegotiation, no early data. A session is never resumed: deliveries come over connections that are kept, so that
 * resuming would save little, while a key for tickets would have to be rotated to keep past traffic secret, and a ticket
 * would outlive the certificate, and the authorities of clients, that it was given under.
 *
 * Any thread may use it. What is replaced holds for sessions that are made from then on; others go on with what they have.
 */
struct tls;

/* The certificate has its key. Returns NULL with the reason. */
struct tls *tls_new(const struct certificate *certificate, struct error *error) MUST_CHECK;

/* No server may use it any more; sessions may. NULL is harmless. */
void tls_free(struct tls *tls);

/* Returns 0, or -1 with the reason; then all stays as it was. */
int tls_replace(struct tls *tls, const struct certificate *certificate, struct error *error) MUST_CHECK;

/* The server's side of a session. For SSL_free(). Returns NULL when memory fails. */
SSL *tls_session(struct tls *tls) MUST_CHECK;

/* Send close_notify, unless the handshake is not complete or it was sent before. NULL, for no TLS, is harmless. */
void tls_say_goodbye(SSL *session);

/**
 * tls_log_end(session, in_handshake, code, client):
 * Log why a client's session has failed, in its handshake or later, counted together with others that failed for the same
 * reason; code is OpenSSL's, or 0. Nothing is logged for a session that was only closed.
 */
void tls_log_end(const SSL *session, int in_handshake, unsigned long code, const struct address *client);

/* Log that a handshake took longer than handshake_timeout. */
void tls_log_timeout(const struct address *client);

#endif
