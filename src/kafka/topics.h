#ifndef KAFKA_TOPICS_H
#define KAFKA_TOPICS_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/* The use of a topic, which determines its settings. */
enum topic_use { TOPIC_DELIVERIES, TOPIC_QUARANTINE, TOPIC_EVENTS };

/* A topic that the configuration names. */
struct topic_need {
        const char *name;
        enum topic_use use;
};

/* The state of a topic in Kafka. */
struct topic_state {
        int exists;
        int hidden; /* the account may not even know whether it exists */
        int partitions;
        int replicas;       /* the minimum of all partitions */
        int settings_known; /* 0: the account may not read them, and the members below are 0 */
        int compacted;
        int64_t retention_ms;    /* -1: unlimited */
        int64_t retention_bytes; /* -1: unlimited */
        int64_t max_message_bytes;
        int64_t min_insync_replicas;
        int log_append_time;
        int unclean_election;
};

/**
 * topics_needed(config, n):
 * List the topics that the configuration names, each once: deliveries, quarantine, those of events. Returns
 * an array of *n, which the caller frees; the names belong to the configuration.
 */
struct topic_need *topics_needed(const struct config *config, size_t *n);

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
        int only_check; /* create nothing, but let Kafka check whether it could */
};

/*
 * Set 6 partitions, and 3 replicas if there are three brokers, otherwise 1. Returns 0, or -1 with the reason.
 */
int topics_default_settings(rd_kafka_t *client, struct topic_settings *settings, int timeout_ms,
                            struct error *error) MUST_CHECK;

/**
 * topics_create(client, config, need, settings, timeout_ms, error):
 * Create a topic with the settings for its use. Returns 1 when it was created, or could be; 0 when it exists
 * already; -1 with the reason.
 */
int topics_create(rd_kafka_t *client, const struct config *config, const struct topic_need *need,
                  const struct topic_settings *settings, int timeout_ms, struct error *error) MUST_CHECK;

#endif
