#ifndef KAFKA_TOPIC_CHANGES_H
#define KAFKA_TOPIC_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"

/* Changes of the settings of topics, such as those that mend what is wrong with them. */

#define TOPIC_CHANGE_SIZE 32

struct topic_change {
        const char *topic;   /* of the configuration */
        const char *setting; /* Kafka's name, a constant */
        char before[TOPIC_CHANGE_SIZE];
        char after[TOPIC_CHANGE_SIZE];
};

/* All zero: an empty list. free(items) ends it. */
struct topic_changes {
        struct topic_change *items;
        size_t n;
};

/* Append a change. The values are copied. */
void topic_changes_add(struct topic_changes *changes, const char *topic, const char *setting,
                       const char *before, const char *after);

/**
 * topic_changes_apply(client, changes, n, timeout_ms, is_denied, error):
 * Make n changes of one topic, all or none. Its other settings stay. Returns 0, or -1 with the reason;
 * *is_denied is then whether the account lacks a permission.
 */
int topic_changes_apply(rd_kafka_t *client, const struct topic_change *changes, size_t n, int timeout_ms,
                        int *is_denied, struct error *error) MUST_CHECK;

#endif
