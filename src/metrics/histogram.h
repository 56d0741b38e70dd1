#ifndef METRICS_HISTOGRAM_H
#define METRICS_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_MAX_BOUNDS 15

/* What a histogram sorts by: a constant. Values are whole numbers of a small unit, such as nanoseconds. */
struct histogram_scale {
        uint64_t per_unit; /* so many of it make one of the unit that is told, such as a second */
        size_t n;
        uint64_t
            bounds[HISTOGRAM_MAX_BOUNDS]; /* rising; a value belongs to the first that it does not exceed */
};

/*
 * How often values of which size were met. Any thread adds, any thread reads, without a lock: two relaxed additions. What
 * is read is a moment's: values that are being added may be in the sum and not in the counts yet, or the other way about.
 */
struct histogram {
        const struct histogram_scale *scale;
        _Atomic uint64_t sum;
        _Atomic uint64_t
            counts[HISTOGRAM_MAX_BOUNDS + 1]; /* one for each bound; then of values beyond the last */
};

/* What it held at a moment. */
struct histogram_figures {
        uint64_t sum;
        uint64_t up_to[HISTOGRAM_MAX_BOUNDS]; /* values that do not exceed the bound */
        uint64_t count;                       /* all of them */
};

/* scale outlives it. */
void histogram_init(struct histogram *histogram, const struct histogram_scale *scale);

/* Add a value n times. */
void histogram_add(struct histogram *histogram, uint64_t value, uint64_t n);

/* The counts rise from bound to bound, and the last is not above count, whatever is added meanwhile. */
void histogram_read(const struct histogram *histogram, struct histogram_figures *figures);

#endif
