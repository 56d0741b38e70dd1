#ifndef KAFKA_CLIENTS_CHECK_H
#define KAFKA_CLIENTS_CHECK_H

#include "config/config.h"

/*
 * Create the clients of the configured roles, without brokers: only then does librdkafka report properties
 * that contradict each other, or a key that it cannot read. Append the reason.
 */
void clients_check(const struct config *config, struct findings *findings);

#endif
