#ifndef SANDBOX_ENDPOINT_URL_H
#define SANDBOX_ENDPOINT_URL_H

#include "base/compiler.h"
#include "base/error.h"

#define ENDPOINT_URL_MAX 512 /* bytes */

/**
 * endpoint_url_check(text, error):
 * Whether deliveries can go to the URL: absolute, https, or http to a loopback address or localhost; no user name in it and
 * no fragment. Read by the library that will deliver. Returns 0, or -1 with the reason.
 */
int endpoint_url_check(const char *text, struct error *error) MUST_CHECK;

#endif
