#include "dedup/merge_plan.h"

#define TOGETHER 4

/* Return how many adjacent runs are of a time of width_ms, from the first one on. */
static size_t
count_together(struct run *const *runs, size_t n, int64_t width_ms)
{
        int64_t least_ms = INT64_MAX, most_ms = INT64_MIN;

        for (size_t i = 0; i < n; i++) {
                const struct run_header *header = run_header(runs[i]);

                if (i > 0 && header->range.from != run_header(runs[i - 1])->range.to)
                        return i;
                if (header->least_ms < least_ms)
                        least_ms = header->least_ms;
                if (header->most_ms > most_ms)
                        most_ms = header->most_ms;
                if (most_ms - least_ms > width_ms ||
                    header->range.to - run_header(runs[0])->range.from > RUN_MAX_RECORDS)
                        return i;
        }
        return n;
}

/* Return whether runs have about the same size. */
static int
are_alike(struct run *const *runs, size_t n)
{
        uint64_t least = UINT64_MAX, most = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t size = run_header(runs[i])->n_entries;

                least = size < least ? size : least;
                most = size > most ? size : most;
        }
        return most / TOGETHER <= least;
}

size_t
merge_plan(struct run *const *runs, size_t n, int64_t width_ms, size_t max, size_t *first)
{
        for (*first = 0; *first < n; (*first)++) {
                size_t n_together = count_together(runs + *first, n - *first, width_ms);

                if (n_together > 1 && n_together <= max && *first + n_together < n)
                        return n_together; /* a later run is of a later time */
                if (n_together >= TOGETHER && are_alike(runs + *first, TOGETHER))
                        return TOGETHER;
        }
        return 0;
}
