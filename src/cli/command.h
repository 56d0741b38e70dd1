#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>

#include "base/compiler.h"

/* The configuration, unless another is named. */
#define COMMAND_DEFAULT_FILE SYSCONFDIR "/gatepost/gatepost.conf"

/* What every command is told besides its own arguments. */
struct command_context {
        const char *file; /* the configuration */
        const struct command *command;
};

/* A command of gatepost(1). */
struct command {
        const char *name;    /* one word or two: send, topics create */
        const char *usage;   /* its arguments, in one line */
        const char *help;    /* what it does, in one line */
        const char *options; /* a line for each option, or "" */
        /* argv[0] is the last word of the name. Returns an exit status of sysexits.h. */
        int (*run)(const struct command_context *context, int argc, char **argv);
};

/* The options that stand before the command, in the form of a command's. */
extern const char command_main_options[];

/* The commands, in the order of the list; NULL after the last. */
const struct command *command_at(size_t index);

/**
 * command_run(file, argc, argv):
 * Find the command that argv begins with, and run it. Returns its exit status, or EX_USAGE after saying why.
 */
int command_run(const char *file, int argc, char **argv) MUST_CHECK;

/* Write the list of all commands to stdout. */
void command_list(void);

/* For a command that got wrong arguments: says what, and how it is called. Returns EX_USAGE. */
int command_misused(const struct command_context *context, const char *format, ...) PRINTF_LIKE(2, 3);

/* For --help of a command. Returns 0. */
int command_help(const struct command_context *context);

#endif
