#ifndef KAFKA_CLIENT_H
#define KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * What all Kafka clients of the process have in common: the [kafka] properties, and one voice in the log about whether
 * Kafka can be reached. librdkafka's own log lines appear only when its property `debug` is set.
 */

/* One of librdkafka's properties. A list of them ends with a NULL name. */
struct client_property {
        const char *name;
        const char *value;
        int yields; /* only a default: a configured value prevails */
};

/**
 * client_new(type, config, bootstrap, properties, setup, arg, error):
 * A client with the configured properties and those given, which prevail unless they yield. bootstrap replaces the configured
 * bootstrap.servers unless it is NULL. setup may be NULL; it sets callbacks on the conf, whose opaque is arg. Returns
 * NULL with the reason.
 */
rd_kafka_t *client_new(rd_kafka_type_t type, const struct config *config, const char *bootstrap,
                       const struct client_property *properties, void (*setup)(rd_kafka_conf_t *conf),
                       void *arg, struct error *error) MUST_CHECK;

/**
 * client_tell_errors(conf):
 * A setup: when no broker can be reached, or none lets us in, say why, as client_not_reached() does, while the client is
 * polled. For one client of a process, or each would have its own opinion.
 */
void client_tell_errors(rd_kafka_conf_t *conf);

/* For a client with an error callback of its own: say it, if it is why Kafka cannot be reached. */
void client_tell_error(const rd_kafka_t *client, int code, const char *reason);

/*
 * How long a router tries to append a record, in ms: a topic without a leader holds up all others for this time. Never longer
 * than a transaction may last.
 */
long client_append_timeout_ms(const struct config *config) MUST_CHECK;

/* Whether an error says that this account is not permitted to do what it tried. */
int client_is_denied(rd_kafka_resp_err_t err);

/* From a delivery report: why a record was not appended, a constant; NULL: it was. */
const char *client_append_error(const rd_kafka_message_t *report);

/* Whether an error says that a record itself is not acceptable: too large for its topic, for instance. */
int client_is_final(rd_kafka_resp_err_t err);

/**
 * client_ask_topic(client, topic, timeout_ms, topic_err):
 * Ask Kafka for one topic by its name, without creating it. Returns RD_KAFKA_RESP_ERR_NO_ERROR with what Kafka says of the
 * topic in *topic_err, or why there was no answer.
 */
rd_kafka_resp_err_t client_ask_topic(rd_kafka_t *client, const char *topic, int timeout_ms,
                                     rd_kafka_resp_err_t *topic_err) MUST_CHECK;

/* Whether this account is not permitted to know of a topic: Kafka then does not tell whether it is there. */
int client_is_hidden(rd_kafka_t *client, const char *topic, int timeout_ms);

/*
 * Something that only a reachable Kafka can do has succeeded, or failed: says in the log when that is news. Why it failed is
 * news too, when client_tell_error() comes to know it after that.
 */
void client_reached(void);
void client_not_reached(const char *reason);

#endif
