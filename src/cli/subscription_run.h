#ifndef CLI_SUBSCRIPTION_RUN_H
#define CLI_SUBSCRIPTION_RUN_H

#include "cli/api_client.h"
#include "cli/command.h"
#include "cli/subscription_args.h"
#include "config/config.h"

/* What a command does once the service can be called. command is its name. Returns an exit status. */
typedef int subscription_action(struct api_client *client, const struct config *config, const char *command,
                                const struct subscription_args *args);

/* Run a command about subscriptions: read its arguments, as subscription_args_parse(), get ready, act. Returns an exit status. */
int subscription_run(const struct command_context *context, int argc, char **argv, const char *takes,
                     subscription_action *act);

#endif
