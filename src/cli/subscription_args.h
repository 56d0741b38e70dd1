#ifndef CLI_SUBSCRIPTION_ARGS_H
#define CLI_SUBSCRIPTION_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"

/* What the commands about subscriptions are told. */
struct subscription_args {
        const char *url;
        char **events;
        size_t n_events;
        const char *secret_file;
        const char *id;
        uint64_t timeout_ms;
        int as_json;
        int is_dry;
        int rotates;
};

/**
 * subscription_args_parse(context, argc, argv, takes, args):
 * Read the arguments. takes names the options that the command has, besides --help, by their first letters: url, events,
 * secret-file, dry-run, rotate, json, timeout; those for a subscription must be there; `i` is for an ID. Returns -1 to go on, or
 * an exit status; subscription_args_clear() in either case.
 */
int subscription_args_parse(const struct command_context *context, int argc, char **argv, const char *takes,
                            struct subscription_args *args);
void subscription_args_clear(struct subscription_args *args);

#endif
