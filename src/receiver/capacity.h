#ifndef RECEIVER_CAPACITY_H
#define RECEIVER_CAPACITY_H

#include <stdint.h>

#include "config/config.h"

/**
 * capacity_connections(config, n_lanes):
 * How many connections may be open: max_connections, or what the process's limit of descriptors (RLIMIT_NOFILE) leaves,
 * less those that Kafka's clients and the rest need. The limit is raised first, as far as it may be. Fewer than were
 * configured are told in the log. At least 1.
 */
uint64_t capacity_connections(const struct config *config, uint64_t n_lanes);

#endif
