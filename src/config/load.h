#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "config/ini.h"
#include "config/options.h"

/*
 * How a file becomes a configuration: ini.c reads it, values.c and kafka_values.c set each option, check.c
 * and kafka_check.c check options against each other, and warnings.c warns.
 */

/* Append an error, or a warning, on a line of the file; load.c adds the file. Return it, to add a remedy. */
struct finding *load_error(struct findings *findings, size_t line, const char *format, ...) PRINTF_LIKE(3, 4);
struct finding *load_warning(struct findings *findings, size_t line, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Set what to do about a file that cannot be used, if there is something to do. */
void load_set_file_remedy(struct finding *finding, const char *path);

/**
 * values_set(option, value, config, source, error):
 * Read a value by its option's type into the configuration, or into the source for an option of [source
 * NAME]. Return 0, or -1 with the reason, which never quotes a secret.
 */
int values_set(const struct option_row *option, const char *value, struct config *config,
               struct config_source *source, struct error *error) MUST_CHECK;

/* Return what a value of the option looks like, as a remedy, or NULL. */
const char *values_form(const struct option_row *option);

/**
 * kafka_values_set(config, name, value, error):
 * Set a property of [kafka]. It must be one that librdkafka has, with a value that librdkafka accepts, and
 * must not break a guarantee. NAME_file reads a password from a file. Return 0, or -1 with the reason, which
 * never quotes a password.
 */
int kafka_values_set(struct config *config, const char *name, const char *value,
                     struct error *error) MUST_CHECK;

/**
 * check_config(config, ini, findings):
 * Set the defaults that depend on other options, read the files of TLS, and check the options against each
 * other.
 */
void check_config(struct config *config, const struct ini *ini, struct findings *findings);

/* The part of check_config() for [kafka], in kafka_check.c. */
void check_kafka(const struct config *config, const struct ini *ini, struct findings *findings);

/* The part of check_config() that warns of what works, but probably not as intended, in warnings.c. */
void warn_about(const struct config *config, const struct ini *ini, struct findings *findings);

#endif
