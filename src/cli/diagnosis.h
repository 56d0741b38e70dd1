#ifndef CLI_DIAGNOSIS_H
#define CLI_DIAGNOSIS_H

#include <stddef.h>

#include "config/config.h"

#define DIAGNOSIS_MAX_CAUSES 8

/* A delivery whose signature does not match. */
struct diagnosis_subject {
        const struct config *config;
        const struct config_source *source;
        const char *signature; /* values of the headers */
        const char *timestamp;
        const char *body;
        size_t len;
};

struct diagnosis {
        char *causes[DIAGNOSIS_MAX_CAUSES]; /* clauses, which together explain the signature */
        size_t n_causes;
        int is_found;
        size_t n_tried;
        int gave_up; /* not all combinations were tried, because the body is too large */
};

/**
 * diagnosis_find(subject, diagnosis):
 * Find out why a signature does not match: sign what senders and proxies commonly make of a delivery, until
 * a signature equals it, so that the causes are certain. Takes a few seconds at most. Release the diagnosis
 * with diagnosis_clear().
 */
void diagnosis_find(const struct diagnosis_subject *subject, struct diagnosis *diagnosis);
void diagnosis_clear(struct diagnosis *diagnosis);

/* Add a cause, which becomes the diagnosis's; NULL is harmless. */
void diagnosis_add(struct diagnosis *diagnosis, char *cause);

#endif
