#ifndef CLI_AUDIT_H
#define CLI_AUDIT_H

#include "cli/command.h"

/* `gatepost audit`. */
int audit_run(const struct command_context *context, int argc, char **argv);

#endif
