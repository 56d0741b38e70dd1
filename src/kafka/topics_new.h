#ifndef KAFKA_TOPICS_NEW_H
#define KAFKA_TOPICS_NEW_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/**
 * topics_check_new(client, before, next, error):
 * Hold the topics that a configuration names, and the one before did not, against what it asks of them; Kafka is asked only
 * when there are some. Returns 0 when they are right, or -1 with the reason, also when Kafka does not answer. Blocks for a
 * few seconds at most.
 */
int topics_check_new(rd_kafka_t *client, const struct config *before, const struct config *next,
                     struct error *error) MUST_CHECK;

#endif
