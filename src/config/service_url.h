#ifndef CONFIG_SERVICE_URL_H
#define CONFIG_SERVICE_URL_H

#include "base/compiler.h"
#include "base/error.h"

/**
 * service_url_check(text, error):
 * Whether the text is an address at which the service may be called with the API key: https, or http to a loopback
 * address or localhost; a host name or address, a port or none, a path or none, and nothing else, so that no two readers
 * of it can see different hosts. Returns 0, or -1 with the reason.
 */
int service_url_check(const char *text, struct error *error) MUST_CHECK;

#endif
