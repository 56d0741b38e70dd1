#ifndef HTTP_LISTEN_CHECK_H
#define HTTP_LISTEN_CHECK_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/activation.h"
#include "config/config.h"

/*
 * What would keep the daemon from listening on its addresses. Another daemon may be using them, so
 * listen_check() binds nothing.
 */

/**
 * listen_check(config, report):
 * Check the addresses for the user of the systemd units, if there is one and this process runs as root or as
 * somebody else, otherwise for this process. Call report with each problem: an error if no daemon can listen
 * there, a warning if a socket unit, a privilege or another state of the machine makes it possible. Return 0,
 * or -1 after an error.
 */
int listen_check(const struct config *config, problems_reporter *report) MUST_CHECK;

/**
 * listen_check_start(config, activation, error):
 * Check the addresses for this process, which is about to bind those for which no socket was passed. Return 0
 * or, if a restart would not help, -1 with the reason.
 */
int listen_check_start(const struct config *config, const struct activation *activation,
                       struct error *error) MUST_CHECK;

#endif
