#ifndef CONFIG_KAFKA_PROPERTIES_H
#define CONFIG_KAFKA_PROPERTIES_H

#include <stddef.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * The properties of librdkafka: which there are, by which names, and which of them Gatepost refuses. The names come from
 * librdkafka itself, so that those of a newer one are known too.
 */
struct kafka_properties;

/**
 * kafka_properties_set(config, name, value, error):
 * Set a property of [kafka]. It must be one that librdkafka has, with a value that librdkafka accepts, and must not break a guarantee.
 * NAME_file reads a password from a file. Return 0, or -1 with the reason, which never quotes a password.
 */
int kafka_properties_set(struct config *config, const char *name, const char *value,
                         struct error *error) MUST_CHECK;

struct kafka_properties *kafka_properties_new(void);
void kafka_properties_free(struct kafka_properties *properties);

/**
 * kafka_properties_find(properties, name):
 * Return the property's own name: librdkafka takes aliases, such as acks, and `topic.` before the name of a property of
 * topics. NULL when it has no such property. The name lives as long as properties.
 */
const char *kafka_properties_find(const struct kafka_properties *properties, const char *name);

/* The closest of all names, in case a name is misspelt; NULL when none is close. */
const char *kafka_properties_suggest(const struct kafka_properties *properties, const char *name);

/* Why Gatepost refuses the property of that own name; NULL when it does not. */
const char *kafka_property_refused(const char *name);

/**
 * kafka_property_changed(conf):
 * Return the reason for a refused property whose value in conf is not the default, by whatever name it was set; NULL when
 * there is none.
 */
const char *kafka_property_changed(rd_kafka_conf_t *conf);

/* Whether a property's value is a secret, to judge by its name: own name, alias, or one that librdkafka does not have. */
int kafka_property_is_secret(const char *name);

#endif
