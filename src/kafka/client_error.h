#ifndef KAFKA_CLIENT_ERROR_H
#define KAFKA_CLIENT_ERROR_H

#include <librdkafka/rdkafka.h>

#include "base/error.h"

/* librdkafka's errors, in words that lead an operator to the cause. */

/**
 * client_error_log_all(conf):
 * A setup for client_new(): whenever the client is polled, report why no broker can be reached or
 * authenticates us, as client_error_log() does. Use it for one client of the process.
 */
void client_error_log_all(rd_kafka_conf_t *conf);

/* Report an error from a client's own error callback to outage.h, if it is why Kafka is unreachable. */
void client_error_log(const rd_kafka_t *client, int code, const char *reason);

/*
 * If the brokers refuse one of the client's timeouts, replace the reason, in which librdkafka misnames the
 * broker's limit, by the property of [kafka] to change.
 */
void client_error_explain(rd_kafka_t *client, rd_kafka_resp_err_t err, struct error *error);

/* Set the reason why a topic cannot be used: it is missing; else its name, and librdkafka's text. */
void client_error_of_topic(const char *topic, rd_kafka_resp_err_t err, const char *text, struct error *error);

#endif
