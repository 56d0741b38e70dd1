#ifndef CLI_SOURCE_CHOICE_H
#define CLI_SOURCE_CHOICE_H

#include "base/compiler.h"
#include "cli/command.h"
#include "config/config.h"

/* Whose secret and headers are meant, by a command's options; NULL where not given. */
struct source_choice {
        const char *name;          /* --source */
        const char *secret_file;   /* --secret-file, with --header-prefix: then no configuration is needed */
        const char *header_prefix; /* --header-prefix */
};

/* Whether the options go together. Returns -1, or an exit status after saying why not. */
int source_choice_check(const struct source_choice *choice, const struct command_context *context);

/**
 * source_choice_load(choice, context, status):
 * The configuration, or one that has the given secret and prefix only. Returns NULL after saying why, with *status.
 */
struct config *source_choice_load(const struct source_choice *choice, const struct command_context *context,
                                  int *status) MUST_CHECK;

/* The exit status for a secret in a file that could not be read, or may not be used. */
int source_choice_secret_status(const char *secret_file);

/* The source that is meant; without a name the first. Returns NULL after saying that there is none of that name. */
const struct config_source *source_choice_find(const struct source_choice *choice,
                                               const struct config *config,
                                               const struct command_context *context);

#endif
