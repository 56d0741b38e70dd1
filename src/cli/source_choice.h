#ifndef CLI_SOURCE_CHOICE_H
#define CLI_SOURCE_CHOICE_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/* The options that choose a source; NULL if missing. */
struct source_choice {
        const char *name;          /* --source */
        const char *secret_file;   /* --secret-file, with --header-prefix, instead of a configuration */
        const char *header_prefix; /* --header-prefix */
};

/* Check that the options go together. Returns 0, or -1 with the reason. */
int source_choice_check(const struct source_choice *choice, struct error *error) MUST_CHECK;

/**
 * source_choice_run(choice, file, run):
 * Run a command with the configuration in a file, or with one made of the given secret and prefix. Returns
 * its exit status, or that of a configuration that cannot be used, after printing why.
 */
int source_choice_run(const struct source_choice *choice, const char *file,
                      int (*run)(const struct config *config)) MUST_CHECK;

/* Return the exit status for a file with a secret that cannot be read or is not allowed. */
int source_choice_secret_status(const char *secret_file);

/* Find the source by its name, or the first. Returns NULL after printing that it does not exist. */
const struct config_source *source_choice_find(const char *name, const struct config *config);

#endif
