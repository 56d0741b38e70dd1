#ifndef CLI_TOPICS_CREATE_H
#define CLI_TOPICS_CREATE_H

#include "cli/command.h"

/* `gatepost topics create`. */
int topics_create_run(const struct command_context *context, int argc, char **argv);

#endif
