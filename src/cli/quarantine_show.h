#ifndef CLI_QUARANTINE_SHOW_H
#define CLI_QUARANTINE_SHOW_H

#include "cli/command.h"

/* gatepost quarantine show: one record with all that is known of it. */
int quarantine_show_run(const struct command_context *context, int argc, char **argv);

#endif
