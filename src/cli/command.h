#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>

#include "base/compiler.h"

#define COMMAND_DEFAULT_FILE SYSCONFDIR "/gatepost/gatepost.conf"

struct command_context {
        const char *file; /* of the configuration */
        const struct command *command;
};

/* A command of gatepost(1). */
struct command {
        const char *name;    /* one or two words: send, topics create */
        const char *usage;   /* synopsis of the arguments */
        const char *help;    /* summary, on one line */
        const char *options; /* a line for each option, or "" */
        /* argv[0] is the last word of the name. Returns an exit status of sysexits.h. */
        int (*run)(const struct command_context *context, int argc, char **argv);
};

/* The options before the command, in the format of struct command. */
extern const char command_main_options[];

/* Return the command at an index of the table, or NULL after the last. */
const struct command *command_at(size_t index);

/**
 * command_run(file, argc, argv):
 * Run the command that argv begins with. Returns its exit status, or EX_USAGE after printing why.
 */
int command_run(const char *file, int argc, char **argv) MUST_CHECK;

/* Print a summary of all commands to stdout. */
void command_list(void);

/* Print what is wrong with the arguments, and the usage. Returns EX_USAGE. */
int command_misused(const struct command_context *context, const char *format, ...) PRINTF_LIKE(2, 3);

/* Print the help of a command. Returns 0. */
int command_help(const struct command_context *context);

#endif
