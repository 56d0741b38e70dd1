#ifndef CLI_DIAGNOSIS_H
#define CLI_DIAGNOSIS_H

#include <stddef.h>

#include "base/compiler.h"
#include "config/config.h"
#include "model/delivery.h"

/**
 * diagnosis_find(config, source, delivery, body, len):
 * Find out why the signature of a delivery to a source does not match, by a few fixed trials: the signature
 * matches with the cause that is returned. Return a clause, which the caller frees, or NULL if no trial
 * succeeds.
 */
char *diagnosis_find(const struct config *config, const struct config_source *source,
                     const struct delivery *delivery, const char *body, size_t len) MUST_CHECK;

#endif
