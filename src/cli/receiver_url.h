#ifndef CLI_RECEIVER_URL_H
#define CLI_RECEIVER_URL_H

#include <netdb.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * The URL of a receiver as an admin writes it, with --to: http:// may be missing, and the path, too. Then the
 * path of a source is added, before a query.
 */

/* Check that it is a URL of http or https, with a host. Returns 0, or -1 with the reason. */
int receiver_url_check(const char *text, struct error *error) MUST_CHECK;

/* Return the URL with its scheme. The caller frees it. */
char *receiver_url_complete(const char *text) MUST_CHECK;

/* Whether it has a path; / is none. */
int receiver_url_has_path(const char *text);

/* Return the URL with its scheme, and with this path unless it has one. The caller frees it. */
char *receiver_url_make(const char *text, const char *path) MUST_CHECK;

/*
 * Return the host of an https URL, without brackets, to be compared with a certificate and freed; or NULL for
 * others, and for one with characters that RFC 3986 does not allow, as in a name outside of ASCII.
 */
char *receiver_url_tls_host(const char *url) MUST_CHECK;

/*
 * Find the addresses of the URL's host. Returns a list, for freeaddrinfo(), or NULL if it has only one, if
 * one is a loopback address, so that people mean this machine by either address, or if it cannot be
 * resolved within timeout_ms.
 */
struct addrinfo *receiver_url_addresses(const char *url, int timeout_ms) MUST_CHECK;

/* Whether the URL leads straight to a listener of the configuration, rather than to a proxy before it. */
int receiver_url_is_listener(const struct config *config, const char *url, int timeout_ms);

/* Return what to do when the certificate at a URL is not trusted (X509_V_ERR_*); NULL: the reason says it. */
const char *receiver_url_certificate_remedy(int verify_error);

/**
 * receiver_url_source(config, url):
 * Return the source that a URL leads to, or NULL. Proxies may put something before the path of a source, so
 * it is the one with the longest path at the end of the URL's.
 */
const struct config_source *receiver_url_source(const struct config *config, const char *url);

#endif
