#ifndef HTTP_LISTEN_CHECK_H
#define HTTP_LISTEN_CHECK_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/activation.h"
#include "config/config.h"

/* What would keep the daemon from listening on its addresses, as the user who runs this process. */

/*
 * Append an error for each address that cannot be bound, or a warning if only a privilege is missing, since a
 * socket unit may open it. Addresses that are in use are in order.
 */
void listen_check(const struct config *config, struct findings *findings);

/**
 * listen_check_start(config, activation, error):
 * Check the addresses for this process, which is about to bind those for which no socket was passed. Return 0
 * or, if a restart would not help, -1 with the reason.
 */
int listen_check_start(const struct config *config, const struct activation *activation,
                       struct error *error) MUST_CHECK;

#endif
