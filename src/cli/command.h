#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * A command of gatepost(1) is a function and a table of its options and arguments. The parser, --help and the
 * completion scripts read that table, and tests compare it with the man page.
 */

/* An option, or an argument if it has no name. The value goes to each destination that is not NULL. */
struct command_option {
        /* Without the hyphens. */
        const char *name;
        /* Name of the value, such as TIME; in brackets if an argument may be missing. NULL: a switch. */
        const char *argument;
        /* One line, in the imperative. */
        const char *help;
        /* The option must be given; it has a `text`. */
        int is_required;
        /* Short form of the option, or 0. */
        char letter;

        /* Becomes 1. */
        int *flag;
        const char **text;
        /* A whole number, or a duration in milliseconds, from min to max. */
        uint64_t *number, *duration_ms;
        uint64_t min, max;
        /* A past time; see arguments_time(). */
        int64_t *time_ms;
        /* Takes the value itself. Returns 0, or -1 with the reason. */
        int (*parse)(const char *text, struct error *error);
        /* All arguments that are left, ended by NULL. */
        char ***rest;
};

struct command {
        /* One or two words, such as send or topics create; "": the program. */
        const char *name;
        /* One line, in the imperative. */
        const char *help;
        const struct command_option *options;
        size_t n_options;
        /* Of the program: prints its commands. Its first argument ends the options; the rest is a command. */
        void (*list_commands)(FILE *out, const char *group);
        /* Check that options and arguments go together. Returns 0, or -1 with the reason. May be NULL. */
        int (*check)(struct error *error);
        /* Let root become the daemon's user, or that of --user, before a file is opened. */
        int becomes_daemon;
        /* Run the command with the configuration, or with its file. Returns an exit status of sysexits.h. */
        int (*run)(const struct config *config);
        int (*run_with_file)(const char *file);
};

/* Initialise the table of a struct command with an array. */
#define COMMAND_OPTIONS(array) .options = (array), .n_options = ARRAY_LEN(array)

/* Return an option or argument of a command, the common options included, or NULL after the last. */
const struct command_option *command_option_at(const struct command *command, size_t index);

/**
 * command_parse(command, argv):
 * Parse the arguments after argv[0], and print the help if they ask for it. Returns -1, or an exit status if
 * there is nothing left to do.
 */
int command_parse(const struct command *command, char **argv);

/* Parse the arguments, load the configuration if the command needs it, and run it. Returns an exit status. */
int command_run(const struct command *command, char **argv);

/* Print the help of a command. Returns 0. */
int command_help(const struct command *command);

/*
 * Print an error of the command that runs, in one line; command_misused() also its usage. Bytes that are not
 * safe on a terminal are written as \xNN. Return status, or EX_USAGE.
 */
int command_fail(int status, const char *format, ...) PRINTF_LIKE(2, 3);
int command_misused(const char *format, ...) PRINTF_LIKE(1, 2);

/* Say, unless the configuration is a router's, that the command has judged by a file that no router uses. */
void command_note_routers(const struct config *config);

/* Print a line below an error in the same way: what to do about it. */
void command_advise(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
