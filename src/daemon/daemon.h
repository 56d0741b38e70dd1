#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "base/compiler.h"
#include "config/config.h"

/*
 * Block the signals that daemon_run() reads, in this thread and those that it starts. Call it first: signals
 * then wait until they are read, instead of ending the process or interrupting a library.
 */
void daemon_hold_signals(void);

/*
 * Run gatepostd until SIGTERM or SIGINT, or until a part cannot continue. Return the exit status (sysexits.h)
 * after logging why. When the clock is set back, the process ends at once.
 */
int daemon_run(const struct config *config) MUST_CHECK;

#endif
