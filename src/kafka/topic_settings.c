#include "kafka/topic_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"
#include "kafka/client.h"

#define DAY_MS INT64_C(86400000)
#define MINUTE_MS INT64_C(60000)

static const struct {
        const char *name;
        const char *of_brokers; /* name of the default in the configuration of a broker */
} names[TOPIC_N_SETTINGS] = {
    [TOPIC_MAX_MESSAGE_BYTES] = {"max.message.bytes", "message.max.bytes"},
    [TOPIC_UNCLEAN_ELECTION] = {"unclean.leader.election.enable", "unclean.leader.election.enable"},
    [TOPIC_CLEANUP_POLICY] = {"cleanup.policy", "log.cleanup.policy"},
    [TOPIC_MIN_INSYNC_REPLICAS] = {"min.insync.replicas", "min.insync.replicas"},
    [TOPIC_TIMESTAMP_TYPE] = {"message.timestamp.type", "log.message.timestamp.type"},
    [TOPIC_RETENTION_BYTES] = {"retention.bytes", "log.retention.bytes"},
    [TOPIC_RETENTION_MS] = {"retention.ms", "log.retention.ms"},
};

static const char *const limit_names[TOPIC_N_LIMITS] = {
    [TOPIC_BEFORE_MAX] = "message.timestamp.before.max.ms",
    [TOPIC_AFTER_MAX] = "message.timestamp.after.max.ms",
    [TOPIC_DIFFERENCE_MAX] = "message.timestamp.difference.max.ms",
};

const char *
topic_settings_name(enum topic_setting setting)
{
        return names[setting].name;
}

enum topic_setting
topic_settings_find(const char *name)
{
        enum topic_setting s = 0;

        while (s < TOPIC_N_SETTINGS && strcmp(names[s].name, name) != 0)
                s++;
        return s;
}

const char *
topic_settings_suggest(const char *name)
{
        const char *candidates[TOPIC_N_SETTINGS];

        for (size_t s = 0; s < TOPIC_N_SETTINGS; s++)
                candidates[s] = names[s].name;
        return text_closest(name, candidates, TOPIC_N_SETTINGS);
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

int
topic_settings_is_required(enum topic_use use, enum topic_setting setting)
{
        return setting == TOPIC_MAX_MESSAGE_BYTES ||
               (use == TOPIC_DELIVERIES &&
                (setting == TOPIC_CLEANUP_POLICY || setting == TOPIC_RETENTION_BYTES ||
                 setting == TOPIC_RETENTION_MS));
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

/* Return the value of a broker's setting, or NULL. */
static const char *
find_value(const rd_kafka_ConfigEntry_t *const *entries, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0)
                        return rd_kafka_ConfigEntry_value(entries[i]);
        }
        return NULL;
}

static void
read_defaults(const rd_kafka_ConfigResource_t *resource, struct topic_state *state, unsigned *known)
{
        static const struct {
                const char *name;
                int64_t ms;
        } times[] = {{"log.retention.minutes", MINUTE_MS}, {"log.retention.hours", 60 * MINUTE_MS}};
        size_t n;
        const rd_kafka_ConfigEntry_t *const *entries = rd_kafka_ConfigResource_configs(resource, &n);

        for (enum topic_setting s = 0; s < TOPIC_N_SETTINGS; s++) {
                const char *value = find_value(entries, n, names[s].of_brokers);

                if (value == NULL)
                        continue;
                topic_settings_read(state, s, value);
                *known |= 1u << s;
        }
        for (size_t i = 0; i < ARRAY_LEN(times) && !(*known & 1u << TOPIC_RETENTION_MS); i++) {
                const char *value = find_value(entries, n, times[i].name);
                int64_t number = value == NULL ? 0 : strtoll(value, NULL, 10);

                if (value == NULL)
                        continue;
                state->retention_ms = number < 0 ? -1 : number * times[i].ms;
                *known |= 1u << TOPIC_RETENTION_MS;
        }
}

/* Write the number of a broker. Returns 0, or -1 with the reason. */
static int
find_broker(rd_kafka_t *client, char text[NUMBER_TEXT_SIZE], int timeout_ms, struct error *error)
{
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t err = rd_kafka_metadata(client, 0, NULL, &metadata, timeout_ms);
        int result = 0;

        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return client_unreachable(client, err, error);
        if (metadata->broker_cnt == 0)
                result = error_set(error, "Kafka names no broker");
        else
                (void)format(text, metadata->brokers[0].id);
        rd_kafka_metadata_destroy(metadata);
        return result;
}

int
topic_settings_read_defaults(rd_kafka_t *client, struct topic_state *state, unsigned *known, int timeout_ms,
                             struct error *error)
{
        char broker[NUMBER_TEXT_SIZE];
        const rd_kafka_ConfigResource_t **found = NULL;
        rd_kafka_ConfigResource_t *resource;
        rd_kafka_AdminOptions_t *options;
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        rd_kafka_resp_err_t err;
        size_t n = 0;

        *known = 0;
        if (find_broker(client, broker, timeout_ms, error) != 0)
                return -1;
        options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
        queue = rd_kafka_queue_new(client);
        resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, broker);
        (void)rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, NULL, 0);
        rd_kafka_DescribeConfigs(client, &resource, 1, options, queue);
        event = rd_kafka_queue_poll(queue, timeout_ms + 1000);
        err = event == NULL ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_event_error(event);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                found =
                    rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event),
                                                              &n);
        if (n == 1)
                err = rd_kafka_ConfigResource_error(found[0]);
        if (n == 1 && err == RD_KAFKA_RESP_ERR_NO_ERROR)
                read_defaults(found[0], state, known);
        rd_kafka_event_destroy(event);
        rd_kafka_ConfigResource_destroy(resource);
        rd_kafka_queue_destroy(queue);
        rd_kafka_AdminOptions_destroy(options);
        return err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : error_set(error, "%s", rd_kafka_err2str(err));
}
