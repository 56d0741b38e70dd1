#ifndef LATENCIES_H
#define LATENCIES_H

#include <stdint.h>

/*
 * A histogram of times from 1 ns to some hours. Below 1 us it is exact, above it the relative error is at
 * most 1/1024. Initialize with zeros.
 */
#define LATENCIES_STEPS 1024 /* buckets for each power of two */
#define LATENCIES_N_BUCKETS (LATENCIES_STEPS * 36)

struct latencies {
        uint64_t counts[LATENCIES_N_BUCKETS];
        uint64_t n;
        uint64_t max_ns;
};

void latencies_add(struct latencies *latencies, uint64_t ns);

/* Return the time that this share of all times did not exceed (nearest rank); 0 if the histogram is empty. */
uint64_t latencies_at(const struct latencies *latencies, unsigned per_mille);

#endif
