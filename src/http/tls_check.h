#ifndef HTTP_TLS_CHECK_H
#define HTTP_TLS_CHECK_H

#include "base/compiler.h"
#include "config/config.h"

/*
 * What reading the files of TLS does not tell. Both say on stderr what is wrong, as config_load() does, and are content
 * with a configuration without TLS. Return 0, or -1.
 */

/* Whether OpenSSL takes the certificate and its key: they may be too weak. */
int tls_check_strength(const struct config *config) MUST_CHECK;

/* Whether the certificate is valid now. That it will not be for long is a warning only. */
int tls_check_dates(const struct config *config) MUST_CHECK;

#endif
