#ifndef METRICS_PROCESS_H
#define METRICS_PROCESS_H

#include <stdint.h>
#include <stdio.h>

/*
 * Write the metrics of the process that every Prometheus client has, by their usual names, and what it is built of. What
 * /proc does not tell is left out. start_s: when it started, since the epoch.
 */
void process_render(int64_t start_s, FILE *out);

/* How many descriptors are open but for the one that looks, or -1. */
long process_count_descriptors(void);

#endif
