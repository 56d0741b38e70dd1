#ifndef CONFIG_ACTIVATION_H
#define CONFIG_ACTIVATION_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

#define ACTIVATION_MAX 32

/*
 * Listening sockets that the service manager has opened and passed on, as sd_listen_fds(3) describes: it goes on listening
 * while this process ends and the next one starts. They take the place of `listen`. A plain value; the sockets stay the
 * manager's: they are neither closed nor, of a Unix-domain socket, removed.
 */
struct activation {
        int receivers[ACTIVATION_MAX];
        size_t n_receivers;
        int admin; /* -1: none */
};

/* Nothing was passed on. */
extern const struct activation activation_none;

/**
 * activation_take(activation, error):
 * Take what was passed on, and LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES out of the environment, so that no child has
 * them. A socket's name (FileDescriptorName= of its unit) says what it is for: `receiver`, which sockets without a name
 * are too, or `admin`. Call it before threads start, and before anything is opened. Returns 0, or -1 with the reason why
 * what was passed on cannot be used.
 */
int activation_take(struct activation *activation, struct error *error) MUST_CHECK;

/* Whether the configuration has a use for what was passed on. Returns 0, or -1 with the reason. */
int activation_fits(const struct activation *activation, const struct config *config,
                    struct error *error) MUST_CHECK;

#endif
