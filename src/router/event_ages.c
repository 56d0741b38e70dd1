#include "router/event_ages.h"

#include <stdlib.h>

#define FIRST_SIZE 64

static int
grow(struct event_ages *ages)
{
        size_t size = ages->size == 0 ? FIRST_SIZE : 2 * ages->size;
        struct event_ages_run *runs = reallocarray(ages->runs, size, sizeof(*runs));

        if (runs == NULL)
                return -1;
        ages->runs = runs;
        ages->size = size;
        return 0;
}

int
event_ages_add(struct event_ages *ages, int64_t signed_s)
{
        if (signed_s < 0)
                return 0;
        if (ages->n > 0 && ages->runs[ages->n - 1].signed_s == signed_s) {
                ages->runs[ages->n - 1].n++;
                return 0;
        }
        if (ages->n == ages->size && grow(ages) != 0)
                return -1;
        ages->runs[ages->n++] = (struct event_ages_run){signed_s, 1};
        return 0;
}

void
event_ages_observe(const struct event_ages *ages, int64_t now_ms, struct metrics *metrics)
{
        for (size_t i = 0; i < ages->n; i++) {
                int64_t age_ms = now_ms - ages->runs[i].signed_s * 1000;

                metrics_observe(metrics, HISTOGRAM_EVENT_AGE, age_ms > 0 ? (uint64_t)age_ms : 0,
                                ages->runs[i].n);
        }
}

void
event_ages_reset(struct event_ages *ages)
{
        ages->n = 0;
}

void
event_ages_free(struct event_ages *ages)
{
        free(ages->runs);
}
