#ifndef CLI_SUBSCRIPTIONS_H
#define CLI_SUBSCRIPTIONS_H

#include "cli/command.h"

/* gatepost subscriptions list, add, remove: the webhooks that the service has, and changing them one by one. */
int subscriptions_list_run(const struct command_context *context, int argc, char **argv);
int subscriptions_add_run(const struct command_context *context, int argc, char **argv);
int subscriptions_remove_run(const struct command_context *context, int argc, char **argv);

#endif
