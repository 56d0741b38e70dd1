#ifndef HTTP_TLS_LOG_H
#define HTTP_TLS_LOG_H

#include <openssl/ssl.h>

#include "base/address.h"

/**
 * tls_log_end(session, in_handshake, code, client):
 * Log why a client's session has failed, in its handshake or later, summed up with others that failed for the same reason;
 * code is OpenSSL's, or 0. Nothing is logged for one that was only closed.
 */
void tls_log_end(const SSL *session, int in_handshake, unsigned long code, const struct address *client);

/* Likewise for one whose handshake was not done in time. */
void tls_log_timeout(const struct address *client);

#endif
