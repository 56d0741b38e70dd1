#ifndef CONFIG_KAFKA_H
#define CONFIG_KAFKA_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/**
 * kafka_set(config, name, value, error):
 * Take a property of [kafka]: known to librdkafka, with a value that it accepts, and not one that would break a guarantee.
 * NAME_file reads a password from a file. Returns 0, or -1 with the reason, which never quotes a password.
 */
int kafka_set(struct config *config, const char *name, const char *value, struct error *error) MUST_CHECK;

#endif
