#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "config/ini.h"
#include "config/options.h"

/*
 * How a file becomes a configuration: ini.c reads it, values.c sets each option, check.c checks options
 * against each other.
 */

/**
 * load_file(file, ini, report):
 * Like config_load_reporting(); *ini receives the file's entries. Call ini_clear() afterwards, also after a
 * failure.
 */
struct config *load_file(const char *file, struct ini *ini, problems_reporter *report) MUST_CHECK;

/**
 * values_set(option, value, config, source, error):
 * Read a value by its option's type into the configuration, or into the source for an option of [source
 * NAME]. Return 0, or -1 with the reason, which never quotes a secret.
 */
int values_set(const struct option_row *option, const char *value, struct config *config,
               struct config_source *source, struct error *error) MUST_CHECK;

/**
 * check_config(config, ini, problems):
 * Set the defaults that depend on other options, read the files of TLS, and check the options against each
 * other.
 */
void check_config(struct config *config, const struct ini *ini, struct problems *problems);

#endif
