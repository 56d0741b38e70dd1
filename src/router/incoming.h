#ifndef ROUTER_INCOMING_H
#define ROUTER_INCOMING_H

#include <librdkafka/rdkafka.h>

#include "kafka/consumer.h"
#include "model/record.h"
#include "router/partition.h"

/* A message of `deliveries` as the model sees it; the spans are the message's. */
void incoming_record(const rd_kafka_message_t *message, struct record *record);

/* How many records of the partition wait to be decided, as far as the last fetch knew. */
int64_t incoming_lag(const struct consumer *consumer, const char *topic, const struct partition *partition);

#endif
