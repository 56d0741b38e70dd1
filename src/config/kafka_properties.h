#ifndef CONFIG_KAFKA_PROPERTIES_H
#define CONFIG_KAFKA_PROPERTIES_H

#include <librdkafka/rdkafka.h>

/*
 * The properties of librdkafka that Gatepost refuses, and those whose values are secrets. librdkafka itself
 * knows which properties there are, and checks their values.
 */

/* The default of session.timeout.ms, for all consumers, so that max.poll.interval.ms fits all or none. */
#define KAFKA_SESSION_TIMEOUT_MS "15000"

/* Return why Gatepost refuses a property of this name, or NULL if it does not. */
const char *kafka_property_refused(const char *name);

/**
 * kafka_property_changed(conf):
 * Return why Gatepost refuses a property that has another value in conf than the default, by whatever name it
 * was set, such as an alias, or NULL.
 */
const char *kafka_property_changed(rd_kafka_conf_t *conf);

/* Return whether a property's value is a secret, judging by the end of its name, known or not. */
int kafka_property_is_secret(const char *name);

#endif
