#ifndef CONFIG_LISTEN_H
#define CONFIG_LISTEN_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/**
 * listen_parse(text, listen, error):
 * Read 127.0.0.1:8080, *:8080, [::1]:8080 or unix:/path. Names are not looked up. Returns 0, or -1 with the reason; the
 * caller frees listen->text.
 */
int listen_parse(const char *text, struct config_listen *listen, struct error *error) MUST_CHECK;

/* Whether both are one address. Port 0 is always another one. */
int listen_is_same(const struct config_listen *a, const struct config_listen *b);

/* Whether only processes of this machine can connect. */
int listen_is_private(const struct config_listen *listen);

#endif
