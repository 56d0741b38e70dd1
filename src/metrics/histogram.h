#ifndef METRICS_HISTOGRAM_H
#define METRICS_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_MAX_BOUNDS 15

/* The buckets of a histogram: a constant. Values are whole numbers of a small unit, such as nanoseconds. */
struct histogram_scale {
        /* How many of the small unit make one of the unit that is exported, such as a second. */
        uint64_t per_unit;
        size_t n;
        /* Ascending and inclusive; a value counts in the first bucket whose bound it does not exceed. */
        uint64_t bounds[HISTOGRAM_MAX_BOUNDS];
};

/*
 * A histogram that any thread adds to and any thread reads, without a lock: an addition is two relaxed atomic
 * operations. A reading may include a value in the sum and not yet in the counts, or the reverse.
 */
struct histogram {
        const struct histogram_scale *scale;
        _Atomic uint64_t sum;
        /* One count for each bucket, and one for values above the last bound. */
        _Atomic uint64_t counts[HISTOGRAM_MAX_BOUNDS + 1];
};

/* A reading of a histogram. */
struct histogram_figures {
        uint64_t sum;
        /* Number of values up to and including each bound. */
        uint64_t up_to[HISTOGRAM_MAX_BOUNDS];
        /* Number of all values. */
        uint64_t count;
};

/* Empty the histogram. scale must outlive it. */
void histogram_init(struct histogram *histogram, const struct histogram_scale *scale);

/* Add a value n times. */
void histogram_add(struct histogram *histogram, uint64_t value, uint64_t n);

/* Read the histogram. up_to is ascending and never above count, even while other threads add. */
void histogram_read(const struct histogram *histogram, struct histogram_figures *figures);

/**
 * histogram_quantile(scale, figures, q):
 * Return the value, in the exported unit, below which the fraction q of all values lies, estimated as
 * Prometheus does: linear within a bucket; above the last bound, that bound. There must be a value.
 */
double histogram_quantile(const struct histogram_scale *scale, const struct histogram_figures *figures,
                          double q);

#endif
