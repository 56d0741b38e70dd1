#ifndef BASE_PROMETHEUS_BUCKETS_H
#define BASE_PROMETHEUS_BUCKETS_H

#include "base/prometheus.h"

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
