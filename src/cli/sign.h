#ifndef CLI_SIGN_H
#define CLI_SIGN_H

#include "cli/command.h"

/* gatepost sign: prints the headers of a delivery. */
int sign_run(const struct command_context *context, int argc, char **argv);

#endif
