#ifndef CLI_SUBSCRIPTION_SECRET_H
#define CLI_SUBSCRIPTION_SECRET_H

#include <stddef.h>

#include "base/compiler.h"
#include "cli/subscription_args.h"
#include "config/config.h"

/**
 * subscription_secret_payload(args, config, len, status):
 * The JSON that registers a subscription, with the secret from its file, which is told when no source of the configuration has it.
 * Release it with secrets_free(). Returns NULL after saying why, with the exit status for it.
 */
char *subscription_secret_payload(const struct subscription_args *args, const struct config *config,
                                  size_t *len, int *status) MUST_CHECK;

#endif
