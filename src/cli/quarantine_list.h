#ifndef CLI_QUARANTINE_LIST_H
#define CLI_QUARANTINE_LIST_H

#include "cli/command.h"

/* gatepost quarantine list: what is in quarantine, why, and whether it was released. */
int quarantine_list_run(const struct command_context *context, int argc, char **argv);

#endif
