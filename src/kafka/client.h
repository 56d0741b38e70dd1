#ifndef KAFKA_CLIENT_H
#define KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/statistics.h"

/*
 * What all Kafka clients of the process share: the [kafka] properties. outage.h logs when Kafka becomes
 * unreachable or reachable again; librdkafka's own log lines appear only when its property `debug` is set.
 */

/* A property of librdkafka. Lists end with a NULL name. */
struct client_property {
        const char *name;
        const char *value;
        int yields; /* only a default: a configured value prevails */
};

/**
 * client_new(type, config, bootstrap, properties, setup, arg, error):
 * Create a client with the configured properties and the given ones, which prevail unless they yield.
 * bootstrap replaces the configured bootstrap.servers unless it is NULL. setup, which may be NULL, sets
 * callbacks on the conf; their opaque is arg. Returns NULL with the reason.
 */
rd_kafka_t *client_new(rd_kafka_type_t type, const struct config *config, const char *bootstrap,
                       const struct client_property *properties, void (*setup)(rd_kafka_conf_t *conf),
                       void *arg, struct error *error) MUST_CHECK;

/**
 * client_new_reader(config, bootstrap, error):
 * Create a consumer that reads committed records of assigned partitions, joins no group and commits nothing.
 * A record that no longer exists is an error, and the end of a partition an event. Whoever takes records from
 * it has a struct fetch_ahead for it. Returns NULL with the reason.
 */
rd_kafka_t *client_new_reader(const struct config *config, const char *bootstrap,
                              struct error *error) MUST_CHECK;

/**
 * client_purge(client):
 * Give up the records that a producer has not sent or that Kafka has not acknowledged, and wait up to a
 * second for their reports. librdkafka's threads, which purge and report, are stuck in getaddrinfo() for as
 * long as name servers do not answer. Returns the number of missing reports: the threads that owe them do not
 * end either.
 */
int client_purge(rd_kafka_t *client);

/**
 * client_destroy(client):
 * Destroy a client. librdkafka 2.0.2 waits forever for its threads when a topic was deleted, or denied to the
 * account, while a consumer read it: a client that has not ended after 5 s is leaked and logged. Returns 0,
 * or -1 when it was leaked: its callbacks may then still be called.
 */
int client_destroy(rd_kafka_t *client);

/* As client_destroy(), with another time limit; 0 does not wait at all. */
int client_destroy_within(rd_kafka_t *client, int seconds);

/*
 * How long a router tries to append a record, in ms: a topic without a leader delays all others by this time.
 * Never longer than a transaction may last.
 */
long client_append_timeout_ms(const struct config *config) MUST_CHECK;

/* Whether an error means that the account lacks a permission. */
int client_is_denied(rd_kafka_resp_err_t err);

/*
 * Set the reason why Kafka cannot be reached after a request for metadata failed: the cause that a client of
 * this process knows (outage.h), or the error of the request. Calls the client's callbacks. Return -1.
 */
int client_unreachable(rd_kafka_t *client, rd_kafka_resp_err_t err, struct error *error);

/* From a delivery report: why a record was not appended, a constant; NULL: it was appended. */
const char *client_append_error(const rd_kafka_message_t *report);

/* Whether an error means that the record itself is unacceptable: too large for its topic, for instance. */
int client_is_final(rd_kafka_resp_err_t err);

/**
 * client_ask_topic(client, topic, timeout_ms, topic_err, broker):
 * Request the metadata of one topic by name, without creating it. Returns RD_KAFKA_RESP_ERR_NO_ERROR with the
 * topic's own error in *topic_err and, unless it is NULL, the name of the broker that answered in broker; or
 * the reason why no broker answered.
 */
rd_kafka_resp_err_t client_ask_topic(rd_kafka_t *client, const char *topic, int timeout_ms,
                                     rd_kafka_resp_err_t *topic_err,
                                     char broker[STATISTICS_NAME_SIZE]) MUST_CHECK;

/* Whether the account may not describe a topic: Kafka then does not reveal whether it exists. */
int client_is_hidden(rd_kafka_t *client, const char *topic, int timeout_ms);

/*
 * Replace the times in a list, in ms since the epoch, by the offsets of the first records from then on, or by
 * RD_KAFKA_OFFSET_END. Returns the first error.
 */
rd_kafka_resp_err_t client_query_times(rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions,
                                       int timeout_ms) MUST_CHECK;

/**
 * client_query_ends(client, partitions, end, timeout_ms):
 * Set the offset of each partition of a list to an end of its log: RD_KAFKA_OFFSET_BEGINNING, or
 * RD_KAFKA_OFFSET_END, which depends on the client's isolation level. Returns the first error.
 * rd_kafka_query_watermark_offsets(), of librdkafka 2.0.2, waits for a broker that does not accept
 * connections for as long as that lasts, whatever its time limit.
 */
rd_kafka_resp_err_t client_query_ends(rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions,
                                      int64_t end, int timeout_ms) MUST_CHECK;

#endif
