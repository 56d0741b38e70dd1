#ifndef KAFKA_TOPICS_H
#define KAFKA_TOPICS_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "kafka/topic_settings.h"

/* A topic that the configuration names. */
struct topic_need {
        const char *name;
        enum topic_use use;
};

/**
 * topics_needed(config, n):
 * List the topics that the configuration names, each once: deliveries, quarantine, those of events. Returns
 * an array of *n, which the caller frees; the names belong to the configuration.
 */
struct topic_need *topics_needed(const struct config *config, size_t *n);

/* Topics whose metadata a client keeps. Zeros are none. */
struct topics_kept {
        rd_kafka_topic_t **items;
        size_t n;
};

/* Keep those that the configuration names, instead of the ones so far. */
void topics_keep(struct topics_kept *kept, rd_kafka_t *client, const struct config *config);

void topics_release(struct topics_kept *kept);

/**
 * topics_describe(client, needs, n, states, timeout_ms, error):
 * Query the state of the topics. Returns 0, or -1 with the reason when Kafka is unreachable.
 */
int topics_describe(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states,
                    int timeout_ms, struct error *error) MUST_CHECK;

/*
 * Likewise, without settings and hidden topics: an embedded broker does not answer that request (librdkafka
 * 2.0.2).
 */
int topics_describe_partitions(rd_kafka_t *client, const struct topic_need *needs, size_t n,
                               struct topic_state *states, int timeout_ms, struct error *error) MUST_CHECK;

struct topic_settings {
        int partitions;
        int replicas;
        unsigned without; /* leave these out: bits, 1u << enum topic_setting */
};

/*
 * Initialise: 6 partitions, and 3 replicas if there are three brokers, otherwise 1. Returns 0, or -1 with the
 * reason.
 */
int topics_default_settings(rd_kafka_t *client, struct topic_settings *settings, int timeout_ms,
                            struct error *error) MUST_CHECK;

enum topics_created {
        TOPICS_CREATED,
        TOPICS_EXISTS,
        TOPICS_DENIED, /* this account may not create it */
        TOPICS_FAILED,
};

/**
 * topics_create(client, config, need, settings, timeout_ms, error):
 * Create a topic with the settings for its use. Unless it was created or exists, error has the reason.
 */
enum topics_created topics_create(rd_kafka_t *client, const struct config *config,
                                  const struct topic_need *need, const struct topic_settings *settings,
                                  int timeout_ms, struct error *error) MUST_CHECK;

#endif
