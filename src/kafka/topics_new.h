#ifndef KAFKA_TOPICS_NEW_H
#define KAFKA_TOPICS_NEW_H

#include <stdatomic.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/**
 * topics_check_new(client, before, next, cancelled, error):
 * Hold the topics that a configuration names, and the one before did not, against what it asks of them; Kafka is asked only
 * when there are some. Returns 0 when they are right, or -1 with the reason, also when Kafka does not answer. Blocks for
 * about ten seconds at most, and for the answers that it waits for already once *cancelled is set.
 */
int topics_check_new(rd_kafka_t *client, const struct config *before, const struct config *next,
                     const atomic_int *cancelled, struct error *error) MUST_CHECK;

#endif
