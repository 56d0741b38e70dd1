#ifndef ROUTER_INCOMING_H
#define ROUTER_INCOMING_H

#include <stdint.h>

#include "kafka/consumer.h"
#include "router/partition.h"

/* How many records of the partition wait to be decided, as far as the last fetch knew. */
int64_t incoming_lag(const struct consumer *consumer, const char *topic, const struct partition *partition);

#endif
