#ifndef CONFIG_ACTIVATION_H
#define CONFIG_ACTIVATION_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

#define ACTIVATION_MAX 32

/*
 * Listening sockets that the service manager opened and passed (sd_listen_fds(3)). They replace `listen`, and
 * keep accepting while one process ends and the next starts. A plain value; the sockets stay the manager's:
 * they are not closed, and the path of a Unix-domain socket is not removed.
 */
struct activation {
        int receivers[ACTIVATION_MAX];
        size_t n_receivers;
        int admin; /* -1: none */
};

/* No sockets. */
extern const struct activation activation_none;

/**
 * activation_take(activation, error):
 * Take the passed sockets, and remove LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES from the environment, so that
 * no child inherits them. The name of a socket (FileDescriptorName= in its unit) is its purpose: `receiver`,
 * also assumed for a socket without a name, or `admin`. Call it before threads start and before files are
 * opened. Return 0, or -1 and the reason.
 */
int activation_take(struct activation *activation, struct error *error) MUST_CHECK;

/* Check that the configuration uses the sockets. Return 0, or -1 and the reason. */
int activation_fits(const struct activation *activation, const struct config *config,
                    struct error *error) MUST_CHECK;

#endif
