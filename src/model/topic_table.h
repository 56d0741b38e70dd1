#ifndef MODEL_TOPIC_TABLE_H
#define MODEL_TOPIC_TABLE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * The topics of event kinds. A rule has an exact kind, `invoice.accepted`, or a pattern, `reporting_batch.*`,
 * which matches every longer kind that begins with `reporting_batch.`. An exact kind has precedence over
 * patterns, and a longer pattern over a shorter one.
 */
struct topic_table;

#define TOPIC_TABLE_NONE "none" /* instead of a topic: such kinds have none */

struct topic_rule {
        char *pattern;
        char *topic;  /* never NULL in a rule that a caller gets */
        size_t index; /* 0 to topic_table_size() - 1, in the order of adding */
};

struct topic_table *topic_table_new(void);
void topic_table_free(struct topic_table *table);

/**
 * topic_table_add(table, pattern, topic, error):
 * Add a rule. Refuse a pattern that exists, is empty or longer than 255 bytes, or has a `*` anywhere but in a
 * final `.*`, and a topic name that Kafka refuses. The topic `none` takes kinds out. Return 0, or -1 with the
 * reason.
 */
int topic_table_add(struct topic_table *table, const char *pattern, const char *topic,
                    struct error *error) MUST_CHECK;

/**
 * topic_table_add_defaults(table, prefix):
 * Add the kinds that the service documents, except those for which there is a rule already: a topic
 * `<prefix>.<kind>` each, and `<prefix>.reporting_batch` for that family.
 */
void topic_table_add_defaults(struct topic_table *table, const char *prefix);

/*
 * Return the rule for a kind of len bytes, or NULL; kinds over 255 bytes have none. Takes O(log n) for n
 * rules.
 */
const struct topic_rule *topic_table_find(const struct topic_table *table, const char *kind, size_t len);

/* The rules that have a topic. */
size_t topic_table_size(const struct topic_table *table);
const struct topic_rule *topic_table_rule(const struct topic_table *table, size_t index);

/**
 * topic_table_documented_name(kind, len):
 * Return the name by which the service documents a kind of len bytes: the kind itself, or the family
 * reporting_batch. Return NULL for any other kind.
 */
const char *topic_table_documented_name(const char *kind, size_t len);

/* Return whether Kafka accepts the name: 1 to 249 of [a-zA-Z0-9._-], but not "." or "..". */
int topic_name_is_valid(const char *name);

#endif
