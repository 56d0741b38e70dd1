#ifndef CLI_DIAGNOSIS_H
#define CLI_DIAGNOSIS_H

#include <stddef.h>

#include "config/config.h"
#include "model/delivery_check.h"

#define DIAGNOSIS_MAX_CAUSES 8
#define DIAGNOSIS_CAUSE_SIZE 256

struct diagnosis {
        /* Clauses, which together explain the signature. */
        char causes[DIAGNOSIS_MAX_CAUSES][DIAGNOSIS_CAUSE_SIZE];
        size_t n_causes;
        int is_found;
        size_t n_tried;
        int gave_up; /* not all combinations were tried, because the body is too large */
};

/**
 * diagnosis_find(config, source, delivery, diagnosis):
 * Find out why the signature of a delivery to a source does not match: sign what senders and proxies commonly
 * make of a delivery, until a signature equals it, so that the causes are certain. Takes a few seconds at
 * most. diagnosis is zeroed at first.
 */
void diagnosis_find(const struct config *config, const struct config_source *source,
                    const struct delivery_subject *delivery, struct diagnosis *diagnosis);

/* Add a cause. */
void diagnosis_add(struct diagnosis *diagnosis, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
