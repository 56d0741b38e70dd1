#ifndef CLI_KAFKA_ACCESS_H
#define CLI_KAFKA_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "config/config.h"
#include "kafka/range.h"
#include "kafka/topics.h"

/* Time that the command line waits for an answer from Kafka. */
#define KAFKA_ACCESS_TIMEOUT_MS 10000

/* The option --bootstrap of a command, whose value goes to a text. */
/* clang-format off */
#define KAFKA_ACCESS_BOOTSTRAP(destination) \
    {"bootstrap", "ADDR", "connect to these brokers instead of the configured ones", .text = &(destination)}
/* clang-format on */

/**
 * kafka_access_find(config, bootstrap):
 * Check *bootstrap, the value of --bootstrap. If it is NULL and the broker is embedded in gatepostd, ask
 * gatepostd for its address. Returns 0, or an exit status after printing what is wrong. From now on outages
 * of Kafka are not logged: errors have the cause.
 */
int kafka_access_find(const struct config *config, const char **bootstrap) MUST_CHECK;

/* Return a client for administration, or NULL after printing the reason. */
rd_kafka_t *kafka_access_open(const struct config *config, const char *bootstrap);

/*
 * Print why Kafka did not answer; if it is because the account may not ask, also where its permissions are
 * described. Return the exit status. kafka_access_advise() prints only the latter.
 */
int kafka_access_fail(int is_denied, const char *reason);
void kafka_access_advise(void);

/* Return the exit status for a result of range_read(), after printing the reason if it failed. */
int kafka_access_status(enum range_result result, const struct error *error);

/**
 * kafka_access_ranges(config, bootstrap, topic, ranges, n):
 * List all that can be read of a topic now: a range for each partition, indexed by its number. The caller
 * frees *ranges. Returns 0, or an exit status after printing the reason.
 */
int kafka_access_ranges(const struct config *config, const char *bootstrap, const char *topic,
                        struct range **ranges, size_t *n) MUST_CHECK;

/* Return the number of offsets in n ranges: about the number of records, since not every offset has one. */
uint64_t kafka_access_count_offsets(const struct range *ranges, size_t n);

/* Say, if a person waits at a terminal, how much of a topic is read, such as `quarantine`. */
void kafka_access_announce(const char *topic, const struct range *ranges, size_t n);

#endif
