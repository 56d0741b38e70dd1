#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "base/compiler.h"
#include "config/config.h"

/* From now on SIGHUP and SIGUSR1 wait until they are heeded: by themselves they end the process. To be called first of all. */
void daemon_hold_orders(void);

/*
 * Run gatepostd with a configuration until SIGTERM or SIGINT, or until a part cannot go on. Returns the exit status
 * (sysexits.h) after logging why. Ends the process at once when the clock is set back.
 */
int daemon_run(const struct config *config) MUST_CHECK;

#endif
