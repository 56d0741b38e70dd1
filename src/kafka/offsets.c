#include "kafka/offsets.h"

#include <stdlib.h>

#include <librdkafka/rdkafka.h>

#include "base/mem.h"
#include "config/kafka_properties.h"
#include "kafka/client.h"
#include "kafka/client_error.h"

#define RECHECK_MS 3000 /* then check whether a permission is missing */

/* Two clients, since the isolation level belongs to a client, not to a query. */
struct offsets {
        rd_kafka_t *group;           /* read_committed */
        rd_kafka_t *log;             /* read_uncommitted */
        rd_kafka_resp_err_t failure; /* of the last call */
        int ignores_times;           /* the mock cluster of librdkafka 2.0.2 finds no record by time */
};

static rd_kafka_t *
open_client(const struct config *config, const char *bootstrap, const char *isolation,
            void (*setup)(rd_kafka_conf_t *conf), struct error *error)
{
        const struct client_property properties[] = {
            {"group.id", config->group, 0},
            {"enable.auto.commit", "false", 0},
            {"enable.auto.offset.store", "false", 0},
            {"isolation.level", isolation, 0},
            {"session.timeout.ms", KAFKA_SESSION_TIMEOUT_MS, 1},
            {NULL, NULL, 0},
        };

        return client_new(RD_KAFKA_CONSUMER, config, bootstrap, properties, setup, NULL, error);
}

struct offsets *
offsets_new(const struct config *config, const char *bootstrap, struct error *error)
{
        struct offsets *offsets = mem_alloc(sizeof(*offsets));

        offsets->ignores_times = config->embedded;
        offsets->log = open_client(config, bootstrap, "read_uncommitted", client_error_log_all, error);
        offsets->group = open_client(config, bootstrap, "read_committed", NULL, error);
        if (offsets->log == NULL || offsets->group == NULL) {
                offsets_free(offsets);
                return NULL;
        }
        return offsets;
}

void
offsets_free(struct offsets *offsets)
{
        if (offsets == NULL)
                return;
        if (offsets->log != NULL)
                (void)client_destroy(offsets->log);
        if (offsets->group != NULL)
                (void)client_destroy(offsets->group);
        free(offsets);
}

int
offsets_is_denied(const struct offsets *offsets)
{
        return client_is_denied(offsets->failure);
}

int32_t
offsets_partitions(struct offsets *offsets, const char *topic, int timeout_ms, struct error *error)
{
        rd_kafka_topic_t *handle = rd_kafka_topic_new(offsets->log, topic, NULL);
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t err = rd_kafka_metadata(offsets->log, 0, handle, &metadata, timeout_ms);
        int32_t n = -1;

        (void)rd_kafka_poll(offsets->log, 0);
        rd_kafka_topic_destroy(handle);
        offsets->failure = err;
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return client_unreachable(offsets->log, err, error);
        if (metadata->topic_cnt == 1 && metadata->topics[0].partition_cnt > 0)
                n = metadata->topics[0].partition_cnt;
        else if (metadata->topic_cnt == 1)
                offsets->failure = metadata->topics[0].err;
        rd_kafka_metadata_destroy(metadata);
        if (n < 0 && offsets_is_denied(offsets))
                (void)error_set(error, "the topic %s: %s", topic, rd_kafka_err2str(offsets->failure));
        else if (n < 0)
                (void)error_set(error, "the topic %s is missing; create it: gatepost topics create", topic);
        return n;
}

/*
 * Look for a missing permission: the query for the coordinator then just times out, and only the consumer's
 * queue says why.
 */
static rd_kafka_resp_err_t
find_denial(rd_kafka_t *client, rd_kafka_resp_err_t err)
{
        rd_kafka_message_t *message;

        while (!client_is_denied(err) && (message = rd_kafka_consumer_poll(client, 0)) != NULL) {
                if (client_is_denied(message->err))
                        err = message->err;
                rd_kafka_message_destroy(message);
        }
        return err;
}

/* Only a read_committed client waits for the end of transactions. */
static int
ask_committed(struct offsets *offsets, rd_kafka_t *client, const char *topic, int32_t n, int64_t *committed,
              int timeout_ms, struct error *error)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n);
        rd_kafka_resp_err_t err;

        rd_kafka_topic_partition_list_add_range(list, topic, 0, n - 1);
        do {
                err = rd_kafka_committed(client, list, timeout_ms < RECHECK_MS ? timeout_ms : RECHECK_MS);
                if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                        err = find_denial(client, err);
                timeout_ms -= RECHECK_MS;
        } while (err == RD_KAFKA_RESP_ERR__TIMED_OUT && timeout_ms > 0);
        for (int i = 0; i < list->cnt && err == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
                const rd_kafka_topic_partition_t *item = &list->elems[i];

                err = item->err;
                committed[item->partition] = item->offset < 0 ? -1 : item->offset;
        }
        rd_kafka_topic_partition_list_destroy(list);
        offsets->failure = err;
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return error_set(error, "the committed offsets of the router: %s", rd_kafka_err2str(err));
        return 0;
}

int
offsets_committed(struct offsets *offsets, const char *topic, int32_t n, int64_t *committed, int timeout_ms,
                  struct error *error)
{
        return ask_committed(offsets, offsets->group, topic, n, committed, timeout_ms, error);
}

int
offsets_committed_so_far(struct offsets *offsets, const char *topic, int32_t n, int64_t *committed,
                         int timeout_ms, struct error *error)
{
        return ask_committed(offsets, offsets->log, topic, n, committed, timeout_ms, error);
}

/* Returns the error of a query, with the partition that it is of. */
static int
set_failure(struct offsets *offsets, const rd_kafka_topic_partition_list_t *list, rd_kafka_resp_err_t err,
            struct error *error)
{
        int i = 0;

        offsets->failure = err;
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                return 0;
        while (i + 1 < list->cnt && list->elems[i].err != err)
                i++;
        return error_set(error, "the ends of partition %d of %s: %s", list->elems[i].partition,
                         list->elems[i].topic, rd_kafka_err2str(err));
}

/* The isolation level of the client determines the end. */
static int
ask_bounds(struct offsets *offsets, rd_kafka_t *client, struct range *ranges, size_t n, int timeout_ms,
           struct error *error)
{
        rd_kafka_topic_partition_list_t *list;
        rd_kafka_resp_err_t err;
        int result;

        if (n == 0)
                return 0;
        list = rd_kafka_topic_partition_list_new((int)n);
        for (size_t i = 0; i < n; i++)
                (void)rd_kafka_topic_partition_list_add(list, ranges[i].topic, ranges[i].partition);
        err = client_query_ends(client, list, RD_KAFKA_OFFSET_BEGINNING, timeout_ms);
        for (size_t i = 0; i < n; i++)
                ranges[i].from = list->elems[i].offset;
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                err = client_query_ends(client, list, RD_KAFKA_OFFSET_END, timeout_ms);
        for (size_t i = 0; i < n; i++)
                ranges[i].to = list->elems[i].offset;
        result = set_failure(offsets, list, err, error);
        rd_kafka_topic_partition_list_destroy(list);
        return result;
}

int
offsets_bounds(struct offsets *offsets, struct range *ranges, size_t n, int timeout_ms, struct error *error)
{
        return ask_bounds(offsets, offsets->log, ranges, n, timeout_ms, error);
}

int
offsets_at_time(struct offsets *offsets, const char *topic, int32_t partition, int64_t time_ms,
                int64_t *offset, int timeout_ms, struct error *error)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_resp_err_t err;

        /* Kafka interprets negative numbers as ends of the log, not as times. */
        rd_kafka_topic_partition_list_add(list, topic, partition)->offset = time_ms < 0 ? 0 : time_ms;
        err = client_query_times(offsets->log, list, timeout_ms);
        offsets->failure = err;
        *offset = list->elems[0].offset < 0 ? -1 : list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return error_set(error, "partition %d of %s by time: %s", partition, topic,
                                 rd_kafka_err2str(err));
        return 0;
}

int
offsets_begin_at(struct offsets *offsets, struct range *range, int64_t time_ms, int timeout_ms,
                 struct error *error)
{
        int64_t offset;

        if (range->from >= range->to || offsets->ignores_times)
                return 0;
        if (offsets_at_time(offsets, range->topic, range->partition, time_ms, &offset, timeout_ms, error) !=
            0)
                return -1;
        if (offset < 0 || offset > range->to)
                offset = range->to;
        if (offset > range->from)
                range->from = offset;
        return 0;
}

int
offsets_stable_ranges(struct offsets *offsets, const char *topic, struct range **ranges, size_t *n,
                      int timeout_ms, struct error *error)
{
        int32_t n_partitions = offsets_partitions(offsets, topic, timeout_ms, error);

        *ranges = NULL;
        *n = 0;
        if (n_partitions < 0)
                return -1;
        *ranges = mem_alloc((size_t)n_partitions * sizeof(**ranges));
        for (int32_t p = 0; p < n_partitions; p++)
                (*ranges)[p] = (struct range){.topic = topic, .partition = p};
        if (ask_bounds(offsets, offsets->group, *ranges, (size_t)n_partitions, timeout_ms, error) != 0) {
                free(*ranges);
                *ranges = NULL;
                return -1;
        }
        *n = (size_t)n_partitions;
        return 0;
}

/* The tool refuses while the group has members, as which Kafka keeps static ones for the session timeout. */
void
offsets_explain_reset(const struct config *config, int32_t partition, const char *option, struct error *how)
{
        (void)error_set(how,
                        "stop all routers, wait 15 s, then: kafka-consumer-groups.sh --bootstrap-server %s "
                        "--group %s --topic %s:%d --reset-offsets %s --execute",
                        config_tool_broker(config), config->group, config->deliveries_topic, partition,
                        option);
}
