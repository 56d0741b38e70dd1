#ifndef KAFKA_CLIENTS_CHECK_H
#define KAFKA_CLIENTS_CHECK_H

#include "base/compiler.h"
#include "config/config.h"

/*
 * Create the clients of the configured roles, without brokers: only then does librdkafka report properties
 * that contradict each other, or a key that it cannot read. Returns 0, or -1 after calling report with the
 * reason.
 */
int clients_check(const struct config *config, problems_reporter *report) MUST_CHECK;

#endif
