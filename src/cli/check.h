#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli/command.h"

/* `gatepost check`. */
int check_run(const struct command_context *context, int argc, char **argv);

#endif
