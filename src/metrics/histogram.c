#include "metrics/histogram.h"

#include <string.h>

void
histogram_init(struct histogram *histogram, const struct histogram_scale *scale)
{
        memset(histogram, 0, sizeof(*histogram));
        histogram->scale = scale;
}

void
histogram_add(struct histogram *histogram, uint64_t value, uint64_t n)
{
        const struct histogram_scale *scale = histogram->scale;
        size_t i = 0;

        while (i < scale->n && value > scale->bounds[i])
                i++;
        (void)atomic_fetch_add_explicit(&histogram->counts[i], n, memory_order_relaxed);
        (void)atomic_fetch_add_explicit(&histogram->sum, value * n, memory_order_relaxed);
}

void
histogram_read(const struct histogram *histogram, struct histogram_figures *figures)
{
        uint64_t count = 0;

        *figures = (struct histogram_figures){0};
        figures->sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
        for (size_t i = 0; i < histogram->scale->n; i++) {
                count += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
                figures->up_to[i] = count;
        }
        figures->count =
            count + atomic_load_explicit(&histogram->counts[histogram->scale->n], memory_order_relaxed);
}

double
histogram_quantile(const struct histogram_scale *scale, const struct histogram_figures *figures, double q)
{
        const double wanted = q * (double)figures->count, unit = (double)scale->per_unit;
        double low = 0, below = 0;

        for (size_t i = 0; i < scale->n; i++) {
                const double bound = (double)scale->bounds[i] / unit, count = (double)figures->up_to[i];

                if (count >= wanted)
                        return low + (bound - low) * (wanted - below) / (count - below);
                low = bound;
                below = count;
        }
        return low;
}
