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

/* A page in the Prometheus text format, in its order. */
struct prometheus {
        struct prometheus_sample *samples;
        size_t n;
};

/**
 * prometheus_parse(text, page, error):
 * Read version 0.0.4 of the format; skip comments and timestamps. Return 0, or -1 with the reason. Call
 * prometheus_clear() in either case.
 */
int prometheus_parse(const char *text, struct prometheus *page, struct error *error) MUST_CHECK;
void prometheus_clear(struct prometheus *page);

/* Return the value of a label, or "" if it is missing, which means the same. */
const char *prometheus_label(const struct prometheus_sample *sample, const char *name);

/*
 * Return the first sample of that name after a sample, or of all if after is NULL. Return NULL if no more
 * follow.
 */
const struct prometheus_sample *prometheus_next(const struct prometheus *page, const char *name,
                                                const struct prometheus_sample *after);

/* Return the sum of all samples of that name; 0 without any. */
double prometheus_sum(const struct prometheus *page, const char *name);

#define PROMETHEUS_MAX_BUCKETS 64

/* The buckets of a histogram, in order. The bounds belong to the page. */
struct prometheus_buckets {
        struct {
                const char *bound; /* as written: 0.005, +Inf */
                double count;      /* number of values up to the bound */
        } items[PROMETHEUS_MAX_BUCKETS];
        size_t n; /* 0: the page has no such histogram */
};

/* Read the histogram of that name. Add up its series if it has several. */
void prometheus_buckets_read(struct prometheus_buckets *buckets, const struct prometheus *page,
                             const char *name);

/* Return the number of values. */
double prometheus_buckets_count(const struct prometheus_buckets *buckets);

/**
 * prometheus_buckets_quantile(buckets, q):
 * Return the q-quantile, computed as Prometheus does: linear within a bucket, and the last finite bound for
 * values beyond it. The histogram must have values.
 */
double prometheus_buckets_quantile(const struct prometheus_buckets *buckets, double q);

#endif
