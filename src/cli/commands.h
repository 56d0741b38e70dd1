#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/command.h"

/* The commands of gatepost(1), in the order of its help. */
extern const struct command check_command, doctor_command, show_config_command;
extern const struct command topics_create_command, topics_list_command, topics_fix_command;
extern const struct command sign_command, verify_command, send_command, tail_command;
extern const struct command status_command, audit_command;
extern const struct command quarantine_list_command, quarantine_show_command, quarantine_release_command;
extern const struct command spool_list_command, spool_show_command, spool_drain_command;
extern const struct command subscriptions_list_command, subscriptions_add_command;
extern const struct command subscriptions_remove_command, subscriptions_ensure_command;
extern const struct command secret_command;

/* Run the program: the command that argv names. Returns an exit status. */
int commands_run(char **argv);

#endif
