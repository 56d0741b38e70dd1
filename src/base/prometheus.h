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

#define PROMETHEUS_MAX_BUCKETS 64

/* The buckets of a histogram in their order. The bounds belong to the page. */
struct prometheus_buckets {
        struct {
                const char *bound; /* as written: 0.005, +Inf */
                double count;      /* of all values up to it */
        } items[PROMETHEUS_MAX_BUCKETS];
        size_t n; /* 0: the page has no such histogram */
};

/* Read the histogram of that name; several series of it are added up. */
void prometheus_buckets_read(struct prometheus_buckets *buckets, const struct prometheus *page,
                             const char *name);

/* How many values there are. */
double prometheus_buckets_count(const struct prometheus_buckets *buckets);

/**
 * prometheus_buckets_quantile(buckets, q):
 * Below how much the fraction q of the values is, as Prometheus does it: linear within a bucket; beyond the last bound, that
 * bound. Only where there are values.
 */
double prometheus_buckets_quantile(const struct prometheus_buckets *buckets, double q);

#endif
