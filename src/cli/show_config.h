#ifndef CLI_SHOW_CONFIG_H
#define CLI_SHOW_CONFIG_H

#include "cli/command.h"

/* `gatepost config`. */
int show_config_run(const struct command_context *context, int argc, char **argv);

#endif
