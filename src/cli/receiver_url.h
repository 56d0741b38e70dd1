#ifndef CLI_RECEIVER_URL_H
#define CLI_RECEIVER_URL_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * The URL of a receiver as an admin writes it, with --to: http:// may be missing, and the path, too. Then the
 * path of a source is added, before a query.
 */

/* Check that it is a URL of http or https, with a host. Returns 0, or -1 with the reason. */
int receiver_url_check(const char *text, struct error *error) MUST_CHECK;

/* Return whether it has a path; / is none. */
int receiver_url_has_path(const char *text);

/* Return a checked URL with its scheme, and with this path unless it has one. The caller frees it. */
char *receiver_url_make(const char *text, const char *path) MUST_CHECK;

/*
 * Return the source that a URL leads to, or NULL. Proxies may put something before the path of a source, so
 * it is the one with the longest path at the end of the URL's.
 */
const struct config_source *receiver_url_source(const struct config *config, const char *url);

#endif
