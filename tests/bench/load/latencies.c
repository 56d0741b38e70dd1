#include "latencies.h"

#include <stddef.h>

#define STEPS 64 /* buckets for each power of two */

/* Return the bucket of a time. Below 64 ns, each ns has its own bucket. */
static size_t
bucket_of(uint64_t ns)
{
        unsigned shift;
        size_t bucket;

        if (ns < STEPS)
                return ns;
        shift = 63 - (unsigned)__builtin_clzll(ns) - 6;
        bucket = (size_t)(shift + 1) * STEPS + (ns >> shift) - STEPS;
        return bucket < LATENCIES_N_BUCKETS ? bucket : LATENCIES_N_BUCKETS - 1;
}

/* Return the longest time that belongs to a bucket. */
static uint64_t
end_of(size_t bucket)
{
        unsigned shift;

        if (bucket < STEPS)
                return bucket;
        shift = (unsigned)(bucket / STEPS) - 1;
        return ((uint64_t)(STEPS + bucket % STEPS + 1) << shift) - 1;
}

void
latencies_add(struct latencies *latencies, uint64_t ns)
{
        latencies->counts[bucket_of(ns)]++;
        latencies->n++;
        if (ns > latencies->max_ns)
                latencies->max_ns = ns;
}

uint64_t
latencies_at(const struct latencies *latencies, double share)
{
        uint64_t wanted = (uint64_t)(share * (double)latencies->n), seen = 0;

        for (size_t i = 0; i < LATENCIES_N_BUCKETS; i++) {
                seen += latencies->counts[i];
                if (latencies->counts[i] > 0 && seen >= wanted)
                        return end_of(i) < latencies->max_ns ? end_of(i) : latencies->max_ns;
        }
        return latencies->max_ns;
}
