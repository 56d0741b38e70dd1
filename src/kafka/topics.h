#ifndef KAFKA_TOPICS_H
#define KAFKA_TOPICS_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/* What a topic is for, and so how it must be made. */
enum topic_use { TOPIC_DELIVERIES, TOPIC_QUARANTINE, TOPIC_EVENTS };

/* A topic that the configuration names. */
struct topic_need {
        const char *name;
        enum topic_use use;
};

/* A topic as Kafka has it. */
struct topic_state {
        int exists;
        int hidden; /* the account may not even see whether it exists */
        int partitions;
        int replicas;       /* the fewest of any partition */
        int settings_known; /* 0: the account may not read them; then what follows is 0 */
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
 * The topics that the configuration names, each once: deliveries, quarantine, those of events. Returns an array of *n
 * that the caller frees; the names are the configuration's.
 */
struct topic_need *topics_needed(const struct config *config, size_t *n);

/**
 * topics_describe(client, needs, n, states, timeout_ms, error):
 * Ask Kafka for the topics. Returns 0, or -1 with the reason when Kafka cannot be reached.
 */
int topics_describe(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states,
                    int timeout_ms, struct error *error) MUST_CHECK;

struct topic_settings {
        int partitions;
        int replicas;
        int only_check; /* make nothing, but have Kafka check whether it would */
};

/* 6 partitions, and 3 replicas where there are three brokers. Returns 0, or -1 with the reason. */
int topics_default_settings(rd_kafka_t *client, struct topic_settings *settings, int timeout_ms,
                            struct error *error) MUST_CHECK;

/**
 * topics_create(client, config, need, settings, timeout_ms, error):
 * Make a topic with what its use asks for. Returns 1 when it was made, or would be, 0 when it was there already, -1 with the reason.
 */
int topics_create(rd_kafka_t *client, const struct config *config, const struct topic_need *need,
                  const struct topic_settings *settings, int timeout_ms, struct error *error) MUST_CHECK;

#endif
