#include "base/prometheus_buckets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 128

void
prometheus_buckets_read(struct prometheus_buckets *buckets, const struct prometheus *page, const char *name)
{
        const struct prometheus_sample *sample = NULL;
        char series[NAME_SIZE];

        buckets->n = 0;
        (void)snprintf(series, sizeof(series), "%s_bucket", name);
        while ((sample = prometheus_next(page, series, sample)) != NULL) {
                const char *bound = prometheus_label(sample, "le");
                size_t i = 0;

                while (i < buckets->n && strcmp(buckets->items[i].bound, bound) != 0)
                        i++;
                if (i == PROMETHEUS_MAX_BUCKETS)
                        continue;
                if (i == buckets->n) {
                        buckets->items[i].bound = bound;
                        buckets->items[i].count = 0;
                        buckets->n++;
                }
                buckets->items[i].count += sample->value;
        }
}

double
prometheus_buckets_count(const struct prometheus_buckets *buckets)
{
        return buckets->n == 0 ? 0 : buckets->items[buckets->n - 1].count;
}

double
prometheus_buckets_quantile(const struct prometheus_buckets *buckets, double q)
{
        double wanted = q * prometheus_buckets_count(buckets), low = 0, below = 0;

        for (size_t i = 0; i < buckets->n; i++) {
                double bound = strtod(buckets->items[i].bound, NULL), count = buckets->items[i].count;

                if (count >= wanted)
                        return isfinite(bound) ? low + (bound - low) * (wanted - below) / (count - below)
                                               : low;
                low = bound;
                below = count;
        }
        return low;
}
