#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/command.h"

/* The commands of gatepost(1), in the order of the table in command.c; gatepost(1) describes each. */

int check_run(const struct command_context *context, int argc, char **argv);
int show_config_run(const struct command_context *context, int argc, char **argv);
int topics_create_run(const struct command_context *context, int argc, char **argv);
int topics_list_run(const struct command_context *context, int argc, char **argv);
int sign_run(const struct command_context *context, int argc, char **argv);
int verify_run(const struct command_context *context, int argc, char **argv);
int send_run(const struct command_context *context, int argc, char **argv);
int tail_run(const struct command_context *context, int argc, char **argv);
int status_run(const struct command_context *context, int argc, char **argv);
int audit_run(const struct command_context *context, int argc, char **argv);
int quarantine_list_run(const struct command_context *context, int argc, char **argv);
int quarantine_show_run(const struct command_context *context, int argc, char **argv);
int quarantine_release_run(const struct command_context *context, int argc, char **argv);
int subscriptions_list_run(const struct command_context *context, int argc, char **argv);
int subscriptions_add_run(const struct command_context *context, int argc, char **argv);
int subscriptions_remove_run(const struct command_context *context, int argc, char **argv);
int subscriptions_ensure_run(const struct command_context *context, int argc, char **argv);
int secret_run(const struct command_context *context, int argc, char **argv);
int completion_run(const struct command_context *context, int argc, char **argv);

#endif
