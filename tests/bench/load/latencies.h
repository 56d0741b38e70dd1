#ifndef BENCH_LATENCIES_H
#define BENCH_LATENCIES_H

#include <stdint.h>

/* Counts of times between 1 ns and some hours, each kept to within 1/64 of itself. Begin with zeros. */
#define LATENCIES_N_BUCKETS (64 * 40)

struct latencies {
        uint64_t counts[LATENCIES_N_BUCKETS];
        uint64_t n;
        uint64_t max_ns;
};

void latencies_add(struct latencies *latencies, uint64_t ns);

/* The time that a share of all, from 0 to 1, did not exceed; 0 when there is none. */
uint64_t latencies_at(const struct latencies *latencies, double share);

#endif
