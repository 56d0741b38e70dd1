#ifndef CLI_SUBSCRIPTIONS_ENSURE_H
#define CLI_SUBSCRIPTIONS_ENSURE_H

#include "cli/command.h"

/* gatepost subscriptions ensure: sees to it that the service has one webhook for a URL, with the right events. */
int subscriptions_ensure_run(const struct command_context *context, int argc, char **argv);

#endif
