#ifndef CONFIG_ENDPOINT_H
#define CONFIG_ENDPOINT_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/* Network endpoints in the configuration: addresses to listen on, and the URL of the service. */

/**
 * endpoint_parse(text, listen, error):
 * Read 127.0.0.1:8080, *:8080, [::1]:8080 or unix:/path. Host names are not supported. Return 0, or -1 with
 * the reason. The caller frees listen->text.
 */
int endpoint_parse(const char *text, struct config_listen *listen, struct error *error) MUST_CHECK;

/*
 * Return whether the addresses cannot be bound both: they are the same, or differ only in that one is of all
 * interfaces. Port 0 conflicts with none.
 */
int endpoint_conflicts(const struct config_listen *a, const struct config_listen *b);

/* Return the path of a Unix-domain socket, which belongs to listen, or NULL. */
const char *endpoint_path(const struct config_listen *listen);

/* Return whether only processes on this machine can connect. */
int endpoint_is_private(const struct config_listen *listen);

/**
 * endpoint_check_url(text, error):
 * Check that the service may be called at this URL with the API key: https, or http to a loopback address or
 * localhost; then a host name or address, optionally a port and a path, and nothing else, so that no two
 * parsers can see different hosts in it. Return 0, or -1 with the reason.
 */
int endpoint_check_url(const char *text, struct error *error) MUST_CHECK;

#endif
