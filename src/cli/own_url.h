#ifndef CLI_OWN_URL_H
#define CLI_OWN_URL_H

#include "base/compiler.h"
#include "config/config.h"

/* How a listener of the configuration is reached from this machine. */
struct own_url {
        char *url;               /* the caller frees it */
        const char *ca_file;     /* NULL, or the certificate that is to be found there, whatever its name */
        const char *socket_path; /* NULL, or the Unix-domain socket to go through; the listener's own */
};

/**
 * own_url_make(listen, ca_file, path, own):
 * The URL of a path there; 0.0.0.0 is reached by 127.0.0.1. With ca_file, the listener's certificate, it is reached by TLS.
 * Returns 0, or -1 when the listener's port is 0: then only the daemon knows it.
 */
int own_url_make(const struct config_listen *listen, const char *ca_file, const char *path,
                 struct own_url *own) MUST_CHECK;

#endif
