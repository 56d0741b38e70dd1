#ifndef HTTP_TLS_CHECK_H
#define HTTP_TLS_CHECK_H

#include "base/compiler.h"
#include "config/config.h"

/*
 * Checks of the certificate that reading its files does not make. Both print errors to stderr, as
 * config_load() does, and return 0, also without TLS, or -1.
 */

/* Check that OpenSSL accepts the certificate and its key, which may be too weak. */
int tls_check_strength(const struct config *config) MUST_CHECK;

/* Check that the certificate is valid now; warn when it expires soon. */
int tls_check_dates(const struct config *config) MUST_CHECK;

#endif
