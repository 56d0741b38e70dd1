#ifndef CLI_SEND_H
#define CLI_SEND_H

#include "cli/command.h"

/* `gatepost send`. */
int send_run(const struct command_context *context, int argc, char **argv);

#endif
