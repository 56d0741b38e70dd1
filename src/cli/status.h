#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include "cli/command.h"

/* gatepost status: says what the daemon is doing. */
int status_run(const struct command_context *context, int argc, char **argv);

#endif
