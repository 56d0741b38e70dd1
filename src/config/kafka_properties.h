#ifndef CONFIG_KAFKA_PROPERTIES_H
#define CONFIG_KAFKA_PROPERTIES_H

#include <stddef.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"

/*
 * The properties of librdkafka and their names, and the ones that Gatepost refuses. The names come from
 * librdkafka's documentation at run time, so that new properties of later versions are known.
 */
struct kafka_properties;

/* The default of session.timeout.ms, for all consumers, so that max.poll.interval.ms fits all or none. */
#define KAFKA_SESSION_TIMEOUT_MS "15000"

struct kafka_properties *kafka_properties_new(void);
void kafka_properties_free(struct kafka_properties *properties);

/**
 * kafka_properties_find(properties, name):
 * Return the property's own name, or NULL if there is no such property. librdkafka accepts aliases, such as
 * acks, and the prefix `topic.` for topic properties. The result is valid as long as properties.
 */
const char *kafka_properties_find(const struct kafka_properties *properties, const char *name);

/* Return the name closest to a misspelt one, or NULL if none is close. */
const char *kafka_properties_suggest(const struct kafka_properties *properties, const char *name);

/* Return the possible values of a property, as librdkafka documents them, or "" if it does not. */
const char *kafka_properties_range(const struct kafka_properties *properties, const char *name);

/* Return why Gatepost refuses the property of that own name, or NULL if it does not. */
const char *kafka_property_refused(const char *name);

/**
 * kafka_property_changed(conf):
 * Return why Gatepost refuses a property that has another value in conf than the default, by whatever name it
 * was set, or NULL.
 */
const char *kafka_property_changed(rd_kafka_conf_t *conf);

/* Return whether a property's value is a secret, judging by the end of its name, known or not. */
int kafka_property_is_secret(const char *name);

/* Likewise a password or the secret of a client: one line of text. */
int kafka_property_is_password(const char *name);

#endif
