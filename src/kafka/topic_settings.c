#include "kafka/topic_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define DAY_MS INT64_C(86400000)

static const char *const names[TOPIC_N_SETTINGS] = {
    [TOPIC_MAX_MESSAGE_BYTES] = "max.message.bytes",
    [TOPIC_UNCLEAN_ELECTION] = "unclean.leader.election.enable",
    [TOPIC_CLEANUP_POLICY] = "cleanup.policy",
    [TOPIC_MIN_INSYNC_REPLICAS] = "min.insync.replicas",
    [TOPIC_TIMESTAMP_TYPE] = "message.timestamp.type",
    [TOPIC_RETENTION_BYTES] = "retention.bytes",
    [TOPIC_RETENTION_MS] = "retention.ms",
};

static const char *const limit_names[TOPIC_N_LIMITS] = {
    [TOPIC_BEFORE_MAX] = "message.timestamp.before.max.ms",
    [TOPIC_AFTER_MAX] = "message.timestamp.after.max.ms",
    [TOPIC_DIFFERENCE_MAX] = "message.timestamp.difference.max.ms",
};

const char *
topic_settings_name(enum topic_setting setting)
{
        return names[setting];
}

enum topic_setting
topic_settings_find(const char *name)
{
        enum topic_setting s = 0;

        while (s < TOPIC_N_SETTINGS && strcmp(names[s], name) != 0)
                s++;
        return s;
}

static const char *
format(char text[NUMBER_TEXT_SIZE], int64_t value)
{
        (void)snprintf(text, NUMBER_TEXT_SIZE, "%" PRId64, value);
        return text;
}

/*
 * Events and quarantine keep the brokers' retention, which depends on their readers. No topic is compacted,
 * whatever the brokers' default: all events of a kind have the same key, unless the source's `key` says
 * otherwise.
 */
const char *
topic_settings_value(const struct config *config, enum topic_use use, int replicas,
                     enum topic_setting setting, char text[NUMBER_TEXT_SIZE])
{
        switch (setting) {
        case TOPIC_MAX_MESSAGE_BYTES:
                return format(text, config_max_record(config));
        case TOPIC_UNCLEAN_ELECTION:
                return "false";
        case TOPIC_CLEANUP_POLICY:
                return "delete";
        case TOPIC_MIN_INSYNC_REPLICAS:
                return replicas >= 3 ? "2" : NULL;
        case TOPIC_TIMESTAMP_TYPE:
                return use == TOPIC_DELIVERIES ? "LogAppendTime" : NULL;
        case TOPIC_RETENTION_BYTES:
                return use == TOPIC_DELIVERIES ? "-1" : NULL;
        case TOPIC_RETENTION_MS:
                return use == TOPIC_DELIVERIES ? format(text, (int64_t)config->dedup_window_ms + DAY_MS)
                                               : NULL;
        case TOPIC_N_SETTINGS:
                break;
        }
        return NULL;
}

void
topic_settings_read(struct topic_state *state, enum topic_setting setting, const char *value)
{
        switch (setting) {
        case TOPIC_MAX_MESSAGE_BYTES:
                state->max_message_bytes = strtoll(value, NULL, 10);
                break;
        case TOPIC_UNCLEAN_ELECTION:
                state->unclean_election = strcmp(value, "true") == 0;
                break;
        case TOPIC_CLEANUP_POLICY:
                state->compacted = strstr(value, "compact") != NULL;
                break;
        case TOPIC_MIN_INSYNC_REPLICAS:
                state->min_insync_replicas = strtoll(value, NULL, 10);
                break;
        case TOPIC_TIMESTAMP_TYPE:
                state->log_append_time = strcmp(value, "LogAppendTime") == 0;
                break;
        case TOPIC_RETENTION_BYTES:
                state->retention_bytes = strtoll(value, NULL, 10);
                break;
        case TOPIC_RETENTION_MS:
                state->retention_ms = strtoll(value, NULL, 10);
                break;
        case TOPIC_N_SETTINGS:
                break;
        }
}

const char *
topic_settings_limit(enum topic_limit limit)
{
        return limit_names[limit];
}

void
topic_settings_read_limit(struct topic_state *state, const char *name, const char *value)
{
        if (strcmp(name, "segment.bytes") == 0)
                state->segment_bytes = strtoll(value, NULL, 10);
        for (enum topic_limit l = 0; l < TOPIC_N_LIMITS; l++) {
                if (strcmp(limit_names[l], name) != 0)
                        continue;
                state->limits |= 1u << l;
                state->limits_ms[l] = strtoll(value, NULL, 10);
        }
}
