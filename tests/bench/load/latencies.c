#include "latencies.h"

#include <stddef.h>

#define STEP_BITS 10 /* binary logarithm of LATENCIES_STEPS */

/* Return the bucket of a time. Below LATENCIES_STEPS ns, each ns has its own bucket. */
static size_t
bucket_of(uint64_t ns)
{
        unsigned shift;
        size_t bucket;

        if (ns < LATENCIES_STEPS)
                return ns;
        shift = 63 - (unsigned)__builtin_clzll(ns) - STEP_BITS;
        bucket = (size_t)(shift + 1) * LATENCIES_STEPS + (ns >> shift) - LATENCIES_STEPS;
        return bucket < LATENCIES_N_BUCKETS ? bucket : LATENCIES_N_BUCKETS - 1;
}

/* Return the longest time that belongs to a bucket. */
static uint64_t
end_of(size_t bucket)
{
        unsigned shift;

        if (bucket < LATENCIES_STEPS)
                return bucket;
        shift = (unsigned)(bucket / LATENCIES_STEPS) - 1;
        return ((uint64_t)(LATENCIES_STEPS + bucket % LATENCIES_STEPS + 1) << shift) - 1;
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
latencies_at(const struct latencies *latencies, unsigned per_mille)
{
        uint64_t rank = (latencies->n * per_mille + 999) / 1000, seen = 0;

        for (size_t i = 0; i < LATENCIES_N_BUCKETS; i++) {
                seen += latencies->counts[i];
                if (latencies->counts[i] > 0 && seen >= rank)
                        return end_of(i) < latencies->max_ns ? end_of(i) : latencies->max_ns;
        }
        return latencies->max_ns;
}
