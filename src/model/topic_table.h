#ifndef MODEL_TOPIC_TABLE_H
#define MODEL_TOPIC_TABLE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * Which topic an event kind goes to. A rule is an exact kind, `invoice.accepted`, or a pattern, `reporting_batch.*`, which
 * matches every kind that begins with `reporting_batch.` and goes on (`a.*` does not match `a`). An exact name beats a
 * pattern; of the patterns the longest wins.
 */
struct topic_table;

struct topic_rule {
        char *pattern;
        char *topic;
        size_t index; /* 0 to topic_table_size() - 1, in the order of adding */
};

struct topic_table *topic_table_new(void);
void topic_table_free(struct topic_table *table);

/**
 * topic_table_add(table, pattern, topic, error):
 * Add a rule. Fails when the pattern is there already, is over 255 bytes, empty or has a `*` anywhere but as a last `.*`, or when the
 * topic's name is not one that Kafka takes. Returns 0, or -1 with the reason.
 */
int topic_table_add(struct topic_table *table, const char *pattern, const char *topic,
                    struct error *error) MUST_CHECK;

/**
 * topic_table_add_defaults(table, prefix):
 * Add the kinds that the service documents: `<prefix>.<kind>` each, and `<prefix>.reporting_batch` for that family.
 */
void topic_table_add_defaults(struct topic_table *table, const char *prefix);

/* The rule for a kind of len bytes, or NULL when there is none, as for any kind over 255 bytes. O(log n) in the number of rules. */
const struct topic_rule *topic_table_find(const struct topic_table *table, const char *kind, size_t len);

size_t topic_table_size(const struct topic_table *table);
const struct topic_rule *topic_table_rule(const struct topic_table *table, size_t index);

/* Whether Kafka takes the name: 1 to 249 of [a-zA-Z0-9._-], and neither "." nor "..". */
int topic_name_is_valid(const char *name);

#endif
