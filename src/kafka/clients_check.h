#ifndef KAFKA_CLIENTS_CHECK_H
#define KAFKA_CLIENTS_CHECK_H

#include "base/compiler.h"
#include "config/config.h"

/*
 * Make the clients of the configured roles, without brokers: only then does librdkafka say that properties contradict each
 * other, or that it cannot read a key. Returns 0, or -1 after saying so on stderr.
 */
int clients_check(const struct config *config) MUST_CHECK;

#endif
