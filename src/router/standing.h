#ifndef ROUTER_STANDING_H
#define ROUTER_STANDING_H

#include "kafka/consumer.h"
#include "router/partition.h"

/* Say in the log where the router stands in each partition that it has. consumer is NULL while there is none. */
void standing_log(const struct partition_list *partitions, const struct consumer *consumer,
                  const char *topic);

#endif
