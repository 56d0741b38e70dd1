#ifndef CLI_SECRET_H
#define CLI_SECRET_H

#include "cli/command.h"

/* `gatepost secret new`. */
int secret_run(const struct command_context *context, int argc, char **argv);

#endif
