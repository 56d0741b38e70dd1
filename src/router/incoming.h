#ifndef ROUTER_INCOMING_H
#define ROUTER_INCOMING_H

#include <stdint.h>

#include "kafka/consumer.h"
#include "router/partition.h"

/* How many records of the partition are not routed, those of the open batch too, as far as the last fetch knew. */
int64_t incoming_lag(const struct consumer *consumer, const char *topic, const struct partition *partition);

#endif
