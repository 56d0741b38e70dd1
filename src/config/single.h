#ifndef CONFIG_SINGLE_H
#define CONFIG_SINGLE_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/**
 * single_new(secret_file, header_prefix, error):
 * A configuration without a file, that has nothing but one source: with this secret, this prefix, which is its name too, and
 * defaults. For config_free(). Returns NULL with the reason.
 */
struct config *single_new(const char *secret_file, const char *header_prefix, struct error *error) MUST_CHECK;

#endif
