#ifndef CLI_RECEIVER_URL_H
#define CLI_RECEIVER_URL_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/* How to reach a receiver: a listener of this machine, or a URL as an admin writes it with --to. */
struct receiver_url {
        char *url;               /* the caller frees it */
        const char *ca_file;     /* NULL, or the certificate to expect, whatever its name */
        const char *socket_path; /* NULL, or the Unix-domain socket to connect to; owned by the listener */
};

/**
 * receiver_url_own(listen, ca_file, path, own):
 * Make the URL of a path on a listener; 0.0.0.0 becomes 127.0.0.1. With ca_file, the listener's certificate,
 * it is an https URL. Returns 0, or -1 when the configured port is 0, so that only the daemon knows the port.
 */
int receiver_url_own(const struct config_listen *listen, const char *ca_file, const char *path,
                     struct receiver_url *own) MUST_CHECK;

/* Check that it is a URL of http or https, with a host. Returns 0, or -1 with the reason. */
int receiver_url_check(const char *text, struct error *error) MUST_CHECK;

/* Return whether it has a path; / is none. */
int receiver_url_has_path(const char *text);

/**
 * receiver_url_choose(config, to, path, url, error):
 * Choose how to reach a path of the receiver: by the checked URL `to`, which gets http:// and, before a
 * query, the path unless it has its own; without `to`, by the first listener. Returns 0, or -1 with the
 * reason when that takes no connections from here.
 */
int receiver_url_choose(const struct config *config, const char *to, const char *path,
                        struct receiver_url *url, struct error *error) MUST_CHECK;

/*
 * Return the source that a URL leads to, or NULL. Proxies may put something before the path of a source, so
 * it is the one with the longest path at the end of the URL's.
 */
const struct config_source *receiver_url_source(const struct config *config, const char *url);

#endif
