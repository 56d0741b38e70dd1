#include "kafka/topics.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "kafka/client.h"

#define DEFAULT_PARTITIONS 6
#define DEFAULT_REPLICAS 3
#define MAX_ASKED_BY_NAME 10

static int
is_listed(const struct topic_need *needs, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(needs[i].name, name) == 0)
                        return 1;
        }
        return 0;
}

struct topic_need *
topics_needed(const struct config *config, size_t *n)
{
        size_t n_rules = topic_table_size(config->topics);
        struct topic_need *needs = mem_alloc((n_rules + 2) * sizeof(*needs));

        needs[0] = (struct topic_need){config->deliveries_topic, TOPIC_DELIVERIES};
        needs[1] = (struct topic_need){config->quarantine_topic, TOPIC_QUARANTINE};
        *n = 2;
        for (size_t i = 0; i < n_rules; i++) {
                const char *name = topic_table_rule(config->topics, i)->topic;

                if (!is_listed(needs, *n, name))
                        needs[(*n)++] = (struct topic_need){name, TOPIC_EVENTS};
        }
        return needs;
}

/* librdkafka counts references to topics: get the new ones before the old ones are released. */
void
topics_keep(struct topics_kept *kept, rd_kafka_t *client, const struct config *config)
{
        struct topics_kept before = *kept;
        struct topic_need *needs = topics_needed(config, &kept->n);

        kept->items = mem_alloc(kept->n * sizeof(rd_kafka_topic_t *));
        for (size_t i = 0; i < kept->n; i++)
                kept->items[i] = rd_kafka_topic_new(client, needs[i].name, NULL);
        free(needs);
        topics_release(&before);
}

void
topics_release(struct topics_kept *kept)
{
        for (size_t i = 0; i < kept->n; i++)
                rd_kafka_topic_destroy(kept->items[i]);
        free(kept->items);
        *kept = (struct topics_kept){0};
}

static void
read_topic(struct topic_state *state, const struct rd_kafka_metadata_topic *topic)
{
        if (topic->partition_cnt == 0)
                return;
        state->exists = 1;
        state->partitions = topic->partition_cnt;
        state->replicas = topic->partitions[0].replica_cnt;
        state->in_sync = INT_MAX;
        for (int p = 0; p < topic->partition_cnt; p++) {
                const struct rd_kafka_metadata_partition *partition = &topic->partitions[p];

                if (partition->replica_cnt < state->replicas)
                        state->replicas = partition->replica_cnt;
                if (partition->leader < 0)
                        state->leaderless++;
                else if (partition->isr_cnt < partition->replica_cnt && partition->isr_cnt < state->in_sync)
                        state->in_sync = partition->isr_cnt;
        }
}

/*
 * Read which topics exist, and their partitions. A list of all topics omits those that this account may not
 * describe.
 */
static int
read_metadata(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states,
              int timeout_ms, struct error *error)
{
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t err = rd_kafka_metadata(client, 1, NULL, &metadata, timeout_ms);

        (void)rd_kafka_poll(client, 0); /* calls error callbacks, which log the cause */
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return client_unreachable(client, err, error);
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
 * Find out which missing topics are hidden. That takes one request per topic, so check the first few only;
 * there may be hundreds. The clients do not create topics by asking for them.
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
read_settings(const rd_kafka_ConfigResource_t *resource, struct topic_state *state)
{
        size_t n;
        const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &n);
        rd_kafka_resp_err_t err = rd_kafka_ConfigResource_error(resource);

        state->hidden = !state->exists && err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        state->settings_known = state->exists && err == RD_KAFKA_RESP_ERR_NO_ERROR;
        if (!state->settings_known)
                return;
        for (size_t i = 0; i < n; i++) {
                const char *name = rd_kafka_ConfigEntry_name(entries[i]);
                const char *value = rd_kafka_ConfigEntry_value(entries[i]);
                enum topic_setting setting = topic_settings_find(name);

                if (setting < TOPIC_N_SETTINGS && value != NULL)
                        topic_settings_read(state, setting, value);
                else if (value != NULL)
                        topic_settings_read_limit(state, name, value);
        }
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

/* Request the settings of all topics at once; the answer also distinguishes missing from hidden topics. */
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
topics_describe_partitions(rd_kafka_t *client, const struct topic_need *needs, size_t n,
                           struct topic_state *states, int timeout_ms, struct error *error)
{
        memset(states, 0, n * sizeof(*states));
        return read_metadata(client, needs, n, states, timeout_ms, error);
}

int
topics_describe(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states,
                int timeout_ms, struct error *error)
{
        if (topics_describe_partitions(client, needs, n, states, timeout_ms, error) != 0 ||
            describe_settings(client, needs, n, states, timeout_ms, error) != 0)
                return -1;
        find_hidden(client, needs, n, states, timeout_ms);
        return 0;
}

int
topics_default_settings(rd_kafka_t *client, struct topic_settings *settings, int timeout_ms,
                        struct error *error)
{
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t err = rd_kafka_metadata(client, 1, NULL, &metadata, timeout_ms);

        (void)rd_kafka_poll(client, 0);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return client_unreachable(client, err, error);
        *settings = (struct topic_settings){
            .partitions = DEFAULT_PARTITIONS,
            .replicas = metadata->broker_cnt >= DEFAULT_REPLICAS ? DEFAULT_REPLICAS : 1,
        };
        rd_kafka_metadata_destroy(metadata);
        return 0;
}

/* Set what the topic's use requires, but for the settings to be left out. */
static int
configure_for_use(rd_kafka_NewTopic_t *topic, const struct config *config, enum topic_use use,
                  const struct topic_settings *settings)
{
        for (enum topic_setting s = 0; s < TOPIC_N_SETTINGS; s++) {
                char text[NUMBER_TEXT_SIZE];
                const char *value = topic_settings_value(config, use, settings->replicas, s, text);

                if (value != NULL && !(settings->without & 1u << s) &&
                    rd_kafka_NewTopic_set_config(topic, topic_settings_name(s), value) !=
                        RD_KAFKA_RESP_ERR_NO_ERROR)
                        return 0;
        }
        return 1;
}

/* Send the request, and read its single result. */
static enum topics_created
create(rd_kafka_t *client, rd_kafka_NewTopic_t *topic, int timeout_ms, struct error *error)
{
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
        rd_kafka_event_t *event;
        const rd_kafka_topic_result_t **results = NULL;
        rd_kafka_resp_err_t err;
        const char *reason;
        size_t n = 0;

        (void)rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, NULL, 0);
        (void)rd_kafka_AdminOptions_set_operation_timeout(options, timeout_ms, NULL, 0);
        rd_kafka_CreateTopics(client, &topic, 1, options, queue);
        event = rd_kafka_queue_poll(queue, timeout_ms + 1000);
        err = event == NULL ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_event_error(event);
        reason = event == NULL ? NULL : rd_kafka_event_error_string(event);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
        if (n == 1) {
                err = rd_kafka_topic_result_error(results[0]);
                reason = rd_kafka_topic_result_error_string(results[0]);
        }
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                (void)error_set(error, "%s", reason != NULL ? reason : rd_kafka_err2str(err));
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        rd_kafka_AdminOptions_destroy(options);
        if (err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
                return TOPICS_EXISTS;
        if (client_is_denied(err))
                return TOPICS_DENIED;
        return err == RD_KAFKA_RESP_ERR_NO_ERROR ? TOPICS_CREATED : TOPICS_FAILED;
}

enum topics_created
topics_create(rd_kafka_t *client, const struct config *config, const struct topic_need *need,
              const struct topic_settings *settings, int timeout_ms, struct error *error)
{
        char reason[256] = "";
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(need->name, settings->partitions,
                                                           settings->replicas, reason, sizeof(reason));
        enum topics_created result = TOPICS_FAILED;

        if (topic == NULL) {
                (void)error_set(error, "%s", reason);
                return TOPICS_FAILED;
        }
        if (configure_for_use(topic, config, need->use, settings))
                result = create(client, topic, timeout_ms, error);
        else
                (void)error_set(error, "cannot set its settings");
        rd_kafka_NewTopic_destroy(topic);
        return result;
}
