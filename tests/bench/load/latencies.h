#ifndef BENCH_LATENCIES_H
#define BENCH_LATENCIES_H

#include <stdint.h>

/* A histogram of times from 1 ns to some hours, with a relative error of 1/64. Initialize with zeros. */
#define LATENCIES_N_BUCKETS (64 * 40)

struct latencies {
        uint64_t counts[LATENCIES_N_BUCKETS];
        uint64_t n;
        uint64_t max_ns;
};

void latencies_add(struct latencies *latencies, uint64_t ns);

/* Return the time that this share (0 to 1) of all times did not exceed; 0 if the histogram is empty. */
uint64_t latencies_at(const struct latencies *latencies, double share);

#endif
