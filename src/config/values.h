#ifndef CONFIG_VALUES_H
#define CONFIG_VALUES_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "config/options.h"

/**
 * values_set(option, value, config, source, error):
 * Read a value by its option's type into the configuration, or into the source for an option of [source NAME]. Returns 0,
 * or -1 with what is wrong, which never quotes a secret.
 */
int values_set(const struct option_row *option, const char *value, struct config *config,
               struct config_source *source, struct error *error) MUST_CHECK;

#endif
