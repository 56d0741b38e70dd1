#ifndef CLI_SOURCE_CHOICE_H
#define CLI_SOURCE_CHOICE_H

#include "base/compiler.h"
#include "cli/command.h"
#include "config/config.h"

/* The options that choose a source; NULL if missing. */
struct source_choice {
        const char *name;          /* --source */
        const char *secret_file;   /* --secret-file, with --header-prefix, instead of a configuration */
        const char *header_prefix; /* --header-prefix */
};

/* Check that the options can be combined. Returns -1, or an exit status after printing why not. */
int source_choice_check(const struct source_choice *choice, const struct command_context *context);

/**
 * source_choice_load(choice, context, status):
 * Load the configuration, or make one of the given secret and prefix. Returns NULL, with *status, after
 * printing why.
 */
struct config *source_choice_load(const struct source_choice *choice, const struct command_context *context,
                                  int *status) MUST_CHECK;

/* Return the exit status for a file with a secret that cannot be read or is not allowed. */
int source_choice_secret_status(const char *secret_file);

/* Find the source by its name, or the first. Returns NULL after printing that it does not exist. */
const struct config_source *source_choice_find(const struct source_choice *choice,
                                               const struct config *config,
                                               const struct command_context *context);

#endif
