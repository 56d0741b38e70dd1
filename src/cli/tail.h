#ifndef CLI_TAIL_H
#define CLI_TAIL_H

#include "cli/command.h"

/* `gatepost tail`. */
int tail_run(const struct command_context *context, int argc, char **argv);

#endif
