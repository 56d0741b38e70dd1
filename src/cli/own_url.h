#ifndef CLI_OWN_URL_H
#define CLI_OWN_URL_H

#include "base/compiler.h"
#include "config/config.h"

/* How to reach a configured listener from this machine. */
struct own_url {
        char *url;               /* the caller frees it */
        const char *ca_file;     /* NULL, or the certificate to expect, whatever its name */
        const char *socket_path; /* NULL, or the Unix-domain socket to connect to; owned by the listener */
};

/**
 * own_url_make(listen, ca_file, path, own):
 * Make the URL of a path on a listener; 0.0.0.0 becomes 127.0.0.1. With ca_file, the listener's certificate,
 * it is an https URL. Returns 0, or -1 when the configured port is 0, so that only the daemon knows the port.
 */
int own_url_make(const struct config_listen *listen, const char *ca_file, const char *path,
                 struct own_url *own) MUST_CHECK;

#endif
