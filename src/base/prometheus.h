#ifndef BASE_PROMETHEUS_H
#define BASE_PROMETHEUS_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

#define PROMETHEUS_MAX_LABELS 16

struct prometheus_label {
        char *name;
        char *value; /* UTF-8 without control characters */
};

struct prometheus_sample {
        char *name;
        struct prometheus_label labels[PROMETHEUS_MAX_LABELS];
        size_t n_labels;
        double value;
};

/* What a page in the Prometheus text format says, in its order. */
struct prometheus {
        struct prometheus_sample *samples;
        size_t n;
};

/**
 * prometheus_parse(text, page, error):
 * Read version 0.0.4 of the format; comments and timestamps are passed over. Returns 0, or -1 with the reason; either way
 * the page is to be cleared.
 */
int prometheus_parse(const char *text, struct prometheus *page, struct error *error) MUST_CHECK;
void prometheus_clear(struct prometheus *page);

/* A label's value, or "" when it is not there, which means the same. */
const char *prometheus_label(const struct prometheus_sample *sample, const char *name);

/* The first sample of that name, from one on: NULL for the first of all. Returns NULL when there is none. */
const struct prometheus_sample *prometheus_next(const struct prometheus *page, const char *name,
                                                const struct prometheus_sample *after);

/* The sum of all samples of that name; 0 when there is none. */
double prometheus_sum(const struct prometheus *page, const char *name);

#endif
