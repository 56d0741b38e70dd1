#include "kafka/log_query.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

#include "base/mem.h"
#include "config/kafka_properties.h"
#include "kafka/client.h"
#include "kafka/client_error.h"

#define TIMEOUT_MS 3000
#define GROUP_TIMEOUT_MS 1000 /* all brokers are queried; each one that is down costs this time */

struct log_query {
        const struct config *config;
        rd_kafka_t *client;
        atomic_int is_stopped;
};

struct log_query *
log_query_new(const struct config *config, const char *bootstrap, struct error *error)
{
        const struct client_property properties[] = {
            {"group.id", config->group, 0}, /* the client never joins the group */
            {"enable.auto.commit", "false", 0},
            {"enable.auto.offset.store", "false", 0},
            {"isolation.level", "read_committed", 0},
            {"session.timeout.ms", KAFKA_SESSION_TIMEOUT_MS, 1},
            {NULL, NULL, 0},
        };
        struct log_query *query = mem_alloc(sizeof(*query));

        query->config = config;
        query->client = client_new(RD_KAFKA_CONSUMER, config, bootstrap, properties, NULL, NULL, error);
        if (query->client == NULL) {
                free(query);
                return NULL;
        }
        return query;
}

void
log_query_stop(struct log_query *query)
{
        atomic_store(&query->is_stopped, 1);
}

/* Return the time limit of a query, in ms; after log_query_stop() the query fails immediately. */
static int
timeout(const struct log_query *query)
{
        return atomic_load(&query->is_stopped) ? 1 : TIMEOUT_MS;
}

void
log_query_free(struct log_query *query)
{
        if (query == NULL)
                return;
        (void)client_destroy(query->client); /* it has no callbacks */
        free(query);
}

/* Request the metadata of one topic; the caller destroys it. Returns NULL with the reason. */
static const struct rd_kafka_metadata *
fetch_metadata(struct log_query *query, const char *topic, struct error *error)
{
        rd_kafka_topic_t *handle = rd_kafka_topic_new(query->client, topic, NULL);
        const struct rd_kafka_metadata *metadata = NULL;
        rd_kafka_resp_err_t err =
            handle == NULL ? rd_kafka_last_error()
                           : rd_kafka_metadata(query->client, 0, handle, &metadata, timeout(query));

        if (handle != NULL)
                rd_kafka_topic_destroy(handle);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR && metadata->topic_cnt == 1 &&
            metadata->topics[0].err == RD_KAFKA_RESP_ERR_NO_ERROR)
                return metadata;
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                err = metadata->topic_cnt == 1 ? metadata->topics[0].err
                                               : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
                rd_kafka_metadata_destroy(metadata);
        }
        client_error_of_topic(topic, err, rd_kafka_err2str(err), error);
        return NULL;
}

int
log_query_leaders(struct log_query *query, struct log_query_item *items, size_t n, int32_t *n_partitions,
                  struct error *error)
{
        const struct rd_kafka_metadata *metadata =
            fetch_metadata(query, query->config->deliveries_topic, error);
        const struct rd_kafka_metadata_topic *topic;

        if (metadata == NULL)
                return -1;
        topic = &metadata->topics[0];
        *n_partitions = topic->partition_cnt;
        for (size_t i = 0; i < n; i++) {
                items[i].leader = -1;
                for (int p = 0; p < topic->partition_cnt; p++) {
                        if (topic->partitions[p].id == items[i].partition)
                                items[i].leader = topic->partitions[p].leader;
                }
                if (items[i].leader < 0)
                        (void)error_set(&items[i].error, "the partition has no leader");
        }
        rd_kafka_metadata_destroy(metadata);
        return 0;
}

int
log_query_topic_is_available(struct log_query *query, const char *topic, struct error *error)
{
        const struct rd_kafka_metadata *metadata = fetch_metadata(query, topic, error);
        int is_available = metadata != NULL;

        for (int p = 0; is_available && p < metadata->topics[0].partition_cnt; p++) {
                if (metadata->topics[0].partitions[p].leader < 0) {
                        (void)error_set(error, "partition %d of %s has no leader",
                                        (int)metadata->topics[0].partitions[p].id, topic);
                        is_available = 0;
                }
        }
        if (metadata != NULL)
                rd_kafka_metadata_destroy(metadata);
        return is_available;
}

/* A query for several partitions at once; returns an error if any partition failed. */
typedef rd_kafka_resp_err_t ask_fn(rd_kafka_t *client, rd_kafka_topic_partition_list_t *list, int timeout_ms);

static rd_kafka_resp_err_t
ask_offsets(rd_kafka_t *client, rd_kafka_topic_partition_list_t *list, int timeout_ms)
{
        return rd_kafka_offsets_for_times(client, list, timeout_ms);
}

static rd_kafka_resp_err_t
ask_committed(rd_kafka_t *client, rd_kafka_topic_partition_list_t *list, int timeout_ms)
{
        return rd_kafka_committed(client, list, timeout_ms);
}

/* Copy the answer for one partition. */
static void
take_answer(const rd_kafka_topic_partition_t *answer, struct log_query_item *item,
            char metadata[LOG_QUERY_METADATA_SIZE])
{
        size_t len = answer->metadata_size;

        if (answer->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                (void)error_set(&item->error, "%s", rd_kafka_err2str(answer->err));
                return;
        }
        item->offset = answer->offset < 0 ? -1 : answer->offset;
        if (metadata == NULL)
                return;
        if (answer->metadata == NULL || len >= LOG_QUERY_METADATA_SIZE)
                len = 0;
        if (len > 0)
                memcpy(metadata, answer->metadata, len);
        metadata[len] = '\0';
}

static int
is_about_the_broker(rd_kafka_resp_err_t err)
{
        return err == RD_KAFKA_RESP_ERR__TIMED_OUT || err == RD_KAFKA_RESP_ERR__TRANSPORT ||
               err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
}

/*
 * Query the picked items in one call. librdkafka reports the failure of one partition as the failure of all:
 * then query each half separately, down to single partitions, unless the broker did not answer.
 */
static void
ask_some(struct log_query *query, ask_fn *ask, struct log_query_item *items, const size_t *picked, size_t n,
         char (*metadata)[LOG_QUERY_METADATA_SIZE])
{
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_resp_err_t err;

        if (n == 0)
                return;
        list = rd_kafka_topic_partition_list_new((int)n);
        for (size_t i = 0; i < n; i++)
                rd_kafka_topic_partition_list_add(list, query->config->deliveries_topic,
                                                  items[picked[i]].partition)
                    ->offset = items[picked[i]].offset;
        err = ask(query->client, list, timeout(query));
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                for (size_t i = 0; i < n; i++)
                        take_answer(&list->elems[i], &items[picked[i]],
                                    metadata == NULL ? NULL : metadata[picked[i]]);
        } else if (n == 1 || is_about_the_broker(err)) {
                for (size_t i = 0; i < n; i++)
                        (void)error_set(&items[picked[i]].error, "%s", rd_kafka_err2str(err));
        } else {
                ask_some(query, ask, items, picked, n / 2, metadata);
                ask_some(query, ask, items, picked + n / 2, n - n / 2, metadata);
        }
        rd_kafka_topic_partition_list_destroy(list);
}

/*
 * Query items without an error, grouped by leader: an unreachable leader does not affect the others'
 * partitions.
 */
void
log_query_offsets(struct log_query *query, struct log_query_item *items, size_t n)
{
        size_t *picked = mem_alloc(n * sizeof(*picked));
        uint8_t *is_asked = mem_alloc(n);

        for (size_t first = 0; first < n; first++) {
                size_t n_picked = 0;

                for (size_t i = first; i < n; i++) {
                        if (is_asked[i] || items[i].error.text[0] != '\0' ||
                            items[i].leader != items[first].leader)
                                continue;
                        is_asked[i] = 1;
                        picked[n_picked++] = i;
                }
                ask_some(query, ask_offsets, items, picked, n_picked, NULL);
        }
        free(is_asked);
        free(picked);
}

void
log_query_committed(struct log_query *query, struct log_query_item *items, size_t n,
                    char (*metadata)[LOG_QUERY_METADATA_SIZE])
{
        size_t *picked = mem_alloc(n * sizeof(*picked)), n_picked = 0;

        for (size_t i = 0; i < n; i++) {
                metadata[i][0] = '\0';
                if (items[i].error.text[0] == '\0')
                        picked[n_picked++] = i;
        }
        ask_some(query, ask_committed, items, picked, n_picked, metadata);
        free(picked);
}

/* A parser of big-endian numbers in a member's assignment, whose bytes may come from a foreign member. */
struct assignment_parser {
        const uint8_t *at;
        size_t left;
};

/* Return the next number, or -1 when fewer bytes are left. */
static int64_t
read_number(struct assignment_parser *parser, size_t size)
{
        int64_t number = 0;

        if (parser->left < size) {
                parser->left = 0;
                return -1;
        }
        for (size_t i = 0; i < size; i++)
                number = number << 8 | parser->at[i];
        parser->at += size;
        parser->left -= size;
        return number;
}

/* Mark the partitions of one member. All versions of ConsumerProtocolAssignment begin alike. */
static void
read_assignment(const struct rd_kafka_group_member_info *member, const char *topic, uint8_t *is_assigned,
                int32_t n)
{
        struct assignment_parser parser = {member->member_assignment, (size_t)member->member_assignment_size};
        int64_t n_topics;

        (void)read_number(&parser, 2); /* version */
        n_topics = read_number(&parser, 4);
        for (int64_t t = 0; t < n_topics && parser.left > 0; t++) {
                int64_t len = read_number(&parser, 2), n_partitions;
                int is_ours = len == (int64_t)strlen(topic) && (size_t)len <= parser.left &&
                              memcmp(parser.at, topic, (size_t)len) == 0;

                if (len < 0 || (size_t)len > parser.left)
                        return;
                parser.at += len;
                parser.left -= (size_t)len;
                n_partitions = read_number(&parser, 4);
                for (int64_t p = 0; p < n_partitions && parser.left > 0; p++) {
                        int64_t id = read_number(&parser, 4);

                        if (is_ours && id >= 0 && id < n)
                                is_assigned[id] = 1;
                }
        }
}

/*
 * Use the older call: DescribeConsumerGroups of librdkafka 2.0.2 aborts the process when the coordinator
 * fails.
 */
int
log_query_assigned(struct log_query *query, uint8_t *is_assigned, int32_t n)
{
        const struct rd_kafka_group_list *list = NULL;
        rd_kafka_resp_err_t err;
        int is_known = 0;

        memset(is_assigned, 0, (size_t)n);
        err = rd_kafka_list_groups(query->client, query->config->group, &list,
                                   atomic_load(&query->is_stopped) ? 1 : GROUP_TIMEOUT_MS);
        if ((err == RD_KAFKA_RESP_ERR_NO_ERROR || err == RD_KAFKA_RESP_ERR__PARTIAL) && list != NULL &&
            list->group_cnt == 1 && list->groups[0].err == RD_KAFKA_RESP_ERR_NO_ERROR &&
            strcmp(list->groups[0].state, "Stable") == 0) {
                for (int m = 0; m < list->groups[0].member_cnt; m++)
                        read_assignment(&list->groups[0].members[m], query->config->deliveries_topic,
                                        is_assigned, n);
                is_known = 1;
        }
        if (list != NULL)
                rd_kafka_group_list_destroy(list);
        return is_known;
}
