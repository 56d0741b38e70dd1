#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "base/compiler.h"
#include "config/config.h"

/*
 * Block the signals that daemon_run() reads, in this thread and in those that it starts. To be called first of all: until
 * they are read they wait, instead of ending the process or a system call of a library.
 */
void daemon_hold_signals(void);

/*
 * Run gatepostd with a configuration until SIGTERM or SIGINT, or until a part cannot go on. Returns the exit status
 * (sysexits.h) after logging why. Ends the process at once when the clock is set back.
 */
int daemon_run(const struct config *config) MUST_CHECK;

#endif
