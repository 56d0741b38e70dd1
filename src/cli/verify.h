#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include "cli/command.h"

/* gatepost verify: says what the receiver makes of a saved delivery, and why. */
int verify_run(const struct command_context *context, int argc, char **argv);

#endif
