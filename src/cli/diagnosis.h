#ifndef CLI_DIAGNOSIS_H
#define CLI_DIAGNOSIS_H

#include <stddef.h>

#include "config/config.h"
#include "model/delivery_check.h"

#define DIAGNOSIS_MAX_CAUSES 4
#define DIAGNOSIS_CAUSE_SIZE 256

/* Clauses that together explain why a delivery is refused. */
struct diagnosis {
        char causes[DIAGNOSIS_MAX_CAUSES][DIAGNOSIS_CAUSE_SIZE];
        size_t n_causes;
};

/**
 * diagnosis_find(config, source, delivery, diagnosis):
 * Find out why the signature of a delivery to a source does not match, by a few fixed trials. A cause is
 * added only if the signature matches with it. Returns whether one was found.
 */
int diagnosis_find(const struct config *config, const struct config_source *source,
                   const struct delivery_subject *delivery, struct diagnosis *diagnosis);

/* Add a cause. */
void diagnosis_add(struct diagnosis *diagnosis, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
