#ifndef CLI_KAFKA_ACCESS_H
#define CLI_KAFKA_ACCESS_H

#include <librdkafka/rdkafka.h>

#include "config/config.h"
#include "kafka/topics.h"

/* So long the command line waits for Kafka. */
#define KAFKA_ACCESS_TIMEOUT_MS 8000

/**
 * kafka_access_bootstrap(config, given, status):
 * The brokers to use: those given, NULL for the configured ones. *status is 0, or EX_USAGE after saying that the address
 * of an embedded broker must be given.
 */
const char *kafka_access_bootstrap(const struct config *config, const char *given, int *status);

/* A client for administration, or NULL after saying why. */
rd_kafka_t *kafka_access_open(const struct config *config, const char *bootstrap);

#endif
