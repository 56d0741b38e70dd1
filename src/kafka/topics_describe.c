#include <stdlib.h>
#include <string.h>

#include "kafka/client.h"
#include "kafka/topics.h"

#define MAX_ASKED_BY_NAME 10

static void
read_topic(struct topic_state *state, const struct rd_kafka_metadata_topic *topic)
{
        if (topic->partition_cnt == 0)
                return;
        state->exists = 1;
        state->partitions = topic->partition_cnt;
        state->replicas = topic->partitions[0].replica_cnt;
        for (int p = 1; p < topic->partition_cnt; p++) {
                if (topic->partitions[p].replica_cnt < state->replicas)
                        state->replicas = topic->partitions[p].replica_cnt;
        }
}

/* Which topics are there, and how. A list of all topics leaves out those that this account may not see. */
static int
read_metadata(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states,
              int timeout_ms, struct error *error)
{
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t err = rd_kafka_metadata(client, 1, NULL, &metadata, timeout_ms);

        (void)rd_kafka_poll(client, 0); /* tells why, where there is somebody to tell */
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return error_set(error, "Kafka cannot be reached: %s", rd_kafka_err2str(err));
        for (int t = 0; t < metadata->topic_cnt; t++) {
                for (size_t i = 0; i < n; i++) {
                        if (strcmp(metadata->topics[t].topic, needs[i].name) == 0)
                                read_topic(&states[i], &metadata->topics[t]);
                }
        }
        rd_kafka_metadata_destroy(metadata);
        return 0;
}

/*
 * Of the topics that may be hidden, rather than missing, ask for the first by name: that is a request for each, and whether
 * one more is hidden is not worth the time when there are hundreds. Clients are told not to create what they ask for.
 */
static void
find_hidden(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states,
            int timeout_ms)
{
        size_t n_asked = 0;

        for (size_t i = 0; i < n && n_asked < MAX_ASKED_BY_NAME; i++) {
                if (!states[i].hidden)
                        continue;
                states[i].hidden = client_is_hidden(client, needs[i].name, timeout_ms);
                n_asked++;
        }
}

static void
read_setting(struct topic_state *state, const char *name, const char *value)
{
        if (value == NULL)
                return;
        if (strcmp(name, "retention.ms") == 0)
                state->retention_ms = strtoll(value, NULL, 10);
        else if (strcmp(name, "retention.bytes") == 0)
                state->retention_bytes = strtoll(value, NULL, 10);
        else if (strcmp(name, "max.message.bytes") == 0)
                state->max_message_bytes = strtoll(value, NULL, 10);
        else if (strcmp(name, "min.insync.replicas") == 0)
                state->min_insync_replicas = strtoll(value, NULL, 10);
        else if (strcmp(name, "cleanup.policy") == 0)
                state->compacted = strstr(value, "compact") != NULL;
        else if (strcmp(name, "message.timestamp.type") == 0)
                state->log_append_time = strcmp(value, "LogAppendTime") == 0;
        else if (strcmp(name, "unclean.leader.election.enable") == 0)
                state->unclean_election = strcmp(value, "true") == 0;
}

static void
read_settings(const rd_kafka_ConfigResource_t *resource, struct topic_state *state)
{
        size_t n;
        const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &n);
        rd_kafka_resp_err_t err = rd_kafka_ConfigResource_error(resource);

        state->hidden = !state->exists && err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        state->settings_known = state->exists && err == RD_KAFKA_RESP_ERR_NO_ERROR;
        if (!state->settings_known)
                return;
        for (size_t i = 0; i < n; i++)
                read_setting(state, rd_kafka_ConfigEntry_name(entries[i]),
                             rd_kafka_ConfigEntry_value(entries[i]));
}

static void
read_result(rd_kafka_event_t *event, const struct topic_need *needs, size_t n, struct topic_state *states)
{
        size_t n_resources;
        const rd_kafka_ConfigResource_t **resources =
            rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event),
                                                      &n_resources);

        for (size_t r = 0; r < n_resources; r++) {
                for (size_t i = 0; i < n; i++) {
                        if (strcmp(rd_kafka_ConfigResource_name(resources[r]), needs[i].name) == 0)
                                read_settings(resources[r], &states[i]);
                }
        }
}

/* Ask for the settings of all in one request, which also says of those that no list had whether they are missing. */
static int
describe_settings(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states,
                  int timeout_ms, struct error *error)
{
        rd_kafka_AdminOptions_t *options =
            rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
        rd_kafka_ConfigResource_t **resources = calloc(n + 1, sizeof(*resources));
        rd_kafka_event_t *event = NULL;
        size_t n_resources = 0;
        int result = 0;

        (void)rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, NULL, 0);
        for (size_t i = 0; resources != NULL && i < n; i++) {
                resources[n_resources++] =
                    rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, needs[i].name);
        }
        if (n_resources > 0) {
                rd_kafka_DescribeConfigs(client, resources, n_resources, options, queue);
                event = rd_kafka_queue_poll(queue, timeout_ms + 1000);
                if (event == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
                        result = error_set(error, "the settings of topics cannot be read: %s",
                                           event == NULL ? "no answer" : rd_kafka_event_error_string(event));
                else
                        read_result(event, needs, n, states);
        }
        rd_kafka_event_destroy(event);
        rd_kafka_ConfigResource_destroy_array(resources, n_resources);
        free(resources);
        rd_kafka_queue_destroy(queue);
        rd_kafka_AdminOptions_destroy(options);
        return result;
}

int
topics_describe(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states,
                int timeout_ms, struct error *error)
{
        memset(states, 0, n * sizeof(*states));
        if (read_metadata(client, needs, n, states, timeout_ms, error) != 0 ||
            describe_settings(client, needs, n, states, timeout_ms, error) != 0)
                return -1;
        find_hidden(client, needs, n, states, timeout_ms);
        return 0;
}
