#ifndef KAFKA_TOPIC_SETTINGS_H
#define KAFKA_TOPIC_SETTINGS_H

#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/number.h"
#include "config/config.h"

/* The settings of topics on which the guarantee depends. */
enum topic_setting {
        TOPIC_MAX_MESSAGE_BYTES,
        TOPIC_UNCLEAN_ELECTION,
        TOPIC_CLEANUP_POLICY,
        TOPIC_MIN_INSYNC_REPLICAS,
        TOPIC_TIMESTAMP_TYPE,
        TOPIC_RETENTION_BYTES,
        TOPIC_RETENTION_MS,
        TOPIC_N_SETTINGS,
};

/*
 * The limits of the difference between the timestamp that a record's writer has set and the broker's clock.
 * TOPIC_DIFFERENCE_MAX, of brokers before 4.0, is for both directions, unless the limit of one is set as well
 * (Kafka 3.6, KIP-937).
 */
enum topic_limit { TOPIC_BEFORE_MAX, TOPIC_AFTER_MAX, TOPIC_DIFFERENCE_MAX, TOPIC_N_LIMITS };

/* The use of a topic, which determines its settings. */
enum topic_use { TOPIC_DELIVERIES, TOPIC_QUARANTINE, TOPIC_EVENTS };

/* The state of a topic in Kafka. */
struct topic_state {
        int exists;
        int hidden; /* the account may not even know whether it exists */
        int partitions;
        int replicas;       /* the minimum of all partitions */
        int in_sync;        /* likewise, of those with a leader that lack some; INT_MAX: none does */
        int leaderless;     /* partitions without a leader */
        int settings_known; /* 0: the account may not read them, and the members below are 0 */
        int compacted;
        int64_t retention_ms;    /* -1: unlimited */
        int64_t retention_bytes; /* -1: unlimited */
        int64_t max_message_bytes;
        int64_t segment_bytes; /* 0: unknown */
        int64_t min_insync_replicas;
        int log_append_time;
        int unclean_election;
        unsigned limits; /* those that are known, 1u << enum topic_limit: no broker has all */
        int64_t limits_ms[TOPIC_N_LIMITS];
};

/* Return Kafka's name of a setting. */
const char *topic_settings_name(enum topic_setting setting);

/* Return the setting of this name, or TOPIC_N_SETTINGS. */
enum topic_setting topic_settings_find(const char *name);

/**
 * topic_settings_value(config, use, replicas, setting, text):
 * Return the value that a new topic of this use needs, which may be written to text; NULL if it keeps the
 * brokers' default.
 */
const char *topic_settings_value(const struct config *config, enum topic_use use, int replicas,
                                 enum topic_setting setting, char text[NUMBER_TEXT_SIZE]);

/* Read the value of a setting into the state of a topic. */
void topic_settings_read(struct topic_state *state, enum topic_setting setting, const char *value);

/* Return Kafka's name of a limit. */
const char *topic_settings_limit(enum topic_limit limit);

/* Read a limit, of times or of segments, into the state of a topic, if that is its name. */
void topic_settings_read_limit(struct topic_state *state, const char *name, const char *value);

#endif
