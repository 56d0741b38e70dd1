#ifndef CLI_TOPICS_LIST_H
#define CLI_TOPICS_LIST_H

#include "cli/command.h"

/* `gatepost topics list`. */
int topics_list_run(const struct command_context *context, int argc, char **argv);

#endif
