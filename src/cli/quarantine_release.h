#ifndef CLI_QUARANTINE_RELEASE_H
#define CLI_QUARANTINE_RELEASE_H

#include "cli/command.h"

/* gatepost quarantine release: appends records of quarantine to `deliveries` again. */
int quarantine_release_run(const struct command_context *context, int argc, char **argv);

#endif
