#include "kafka/consumer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/kafka_properties.h"
#include "kafka/client.h"
#include "kafka/client_error.h"
#include "kafka/fetch_ahead.h"

#define READY_MAX 256
#define SEEK_TIMEOUT_MS 1000

struct consumer {
        rd_kafka_t *client;
        rd_kafka_queue_t *queue;
        /* Polled from the queue; returned up to n_returned. */
        rd_kafka_message_t *ready[READY_MAX];
        size_t n_ready, n_returned;
        const struct consumer_events *events;
        const char *topic;
        void *arg;
        int closing;
        struct consumer_origins origins;
        struct fetch_ahead ahead;
};

/*
 * Assign exactly these partitions (NULL: none). librdkafka (still in 2.15, issue 5573) aborts the process
 * when a partition is unassigned a second time before its main thread has noted that fetching stopped. The
 * main thread works through one queue: when rd_kafka_assign() returns, the queue contains the requests to
 * stop; when a later query is answered, it contains the notes that they were carried out. Any further call
 * comes after these notes.
 */
static rd_kafka_resp_err_t
assign(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions)
{
        rd_kafka_resp_err_t err = rd_kafka_assign(client, partitions);
        rd_kafka_topic_partition_list_t *current = NULL;

        (void)rd_kafka_assignment(client, &current);
        if (current != NULL)
                rd_kafka_topic_partition_list_destroy(current);
        return err;
}

/* Drop the polled records, which belong to void positions. */
static void
drop_ready(struct consumer *consumer)
{
        while (consumer->n_returned < consumer->n_ready)
                rd_kafka_message_destroy(consumer->ready[consumer->n_returned++]);
}

/*
 * After closing, librdkafka's main thread answers no more queries, and assign() would wait forever. It is not
 * needed then, since a closing consumer unassigns its partitions only once.
 */
static void
unassign(const struct consumer *consumer, rd_kafka_t *client)
{
        if (consumer->closing)
                (void)rd_kafka_assign(client, NULL);
        else
                (void)assign(client, NULL);
}

/*
 * Partitions are always revoked all at once (the eager protocol). The owner looks up the positions outside
 * this callback; librdkafka waits for the call to assign.
 */
static void
on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *partitions,
             void *opaque)
{
        struct consumer *consumer = opaque;

        if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
                consumer->events->on_assigned(partitions, consumer->arg);
                return;
        }
        consumer->events->on_revoked(consumer->arg);
        unassign(consumer, client);
}

static int
on_statistics(rd_kafka_t *client, char *json, size_t len, void *opaque)
{
        const struct consumer *consumer = opaque;
        struct statistics statistics;

        (void)client;
        if (consumer->events != NULL && consumer->events->on_statistics != NULL &&
            statistics_read(&statistics, json, len) == 0)
                consumer->events->on_statistics(&statistics.totals, consumer->arg);
        return 0; /* librdkafka frees the text */
}

/* An interceptor, called before the client has any connection. */
static rd_kafka_resp_err_t
on_new(rd_kafka_t *client, const rd_kafka_conf_t *conf, void *opaque, char *reason, size_t reason_size)
{
        struct consumer *consumer = rd_kafka_opaque(client);

        (void)conf, (void)opaque, (void)reason, (void)reason_size;
        return consumer_origins_watch(&consumer->origins, client);
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        (void)rd_kafka_conf_interceptor_add_on_new(conf, "gatepost", on_new, NULL);
        rd_kafka_conf_set_stats_cb(conf, on_statistics);
        rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
}

static int
subscribe(rd_kafka_t *client, const char *topic, struct error *error)
{
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_resp_err_t err;

        (void)rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
        err = rd_kafka_subscribe(client, topics);
        rd_kafka_topic_partition_list_destroy(topics);
        return err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0
                                                 : error_set(error, "subscribe: %s", rd_kafka_err2str(err));
}

struct consumer *
consumer_new(const struct config *config, const char *bootstrap, const struct consumer_events *events,
             void *arg, struct error *error)
{
        /*
         * Besides this limit there is librdkafka's of 100,000 records, each of which takes 400 bytes in
         * memory however small it is. A consumer that is faster than the broker, as during a restore, empties
         * its queue.
         */
        const struct client_property properties[] = {
            {"queued.max.messages.kbytes", fetch_ahead_limit(config), 1},
            {"group.id", config->group, 0},
            {"group.instance.id", config->instance, 0},
            {"enable.auto.commit", "false", 0},
            {"enable.auto.offset.store", "false", 0},
            {"auto.offset.reset", "error", 0},
            {"enable.partition.eof", "true", 0},
            {"isolation.level", "read_committed", 0},
            {"statistics.interval.ms", "5000", 0},
            {"topic.metadata.refresh.interval.ms", CONSUMER_ORIGIN_REFRESH_MS, 0},
            {"metadata.max.age.ms", CONSUMER_ORIGIN_MAX_AGE_MS, 0},
            {"topic.metadata.refresh.fast.interval.ms", CONSUMER_ORIGIN_FAST_REFRESH_MS, 0},
            {"partition.assignment.strategy", "range", 0},
            {"session.timeout.ms", KAFKA_SESSION_TIMEOUT_MS, 1},
            {"fetch.error.backoff.ms", "50", 1},
            {"fetch.wait.max.ms", "200", 1}, /* a new position waits this long for the previous fetch */
            {fetch_ahead_backoff(), FETCH_AHEAD_BACKOFF_MS, 1},
            {NULL, NULL, 0},
        };
        struct consumer *consumer = mem_alloc(sizeof(*consumer));

        consumer_origins_init(&consumer->origins);
        consumer->topic = config->deliveries_topic;
        consumer->events = events;
        consumer->arg = arg;
        consumer->client =
            client_new(RD_KAFKA_CONSUMER, config, bootstrap, properties, set_callbacks, consumer, error);
        if (consumer->client == NULL) {
                free(consumer);
                return NULL;
        }
        fetch_ahead_init(&consumer->ahead, config, consumer->client);
        (void)rd_kafka_poll_set_consumer(consumer->client);
        consumer->queue = rd_kafka_queue_get_consumer(consumer->client);
        if (events != NULL && subscribe(consumer->client, config->deliveries_topic, error) != 0) {
                consumer_free(consumer);
                return NULL;
        }
        return consumer;
}

void
consumer_free(struct consumer *consumer)
{
        if (consumer == NULL)
                return;
        drop_ready(consumer);
        rd_kafka_queue_destroy(consumer->queue);
        consumer->closing = 1;
        (void)rd_kafka_consumer_close(consumer->client);
        if (client_destroy(consumer->client) == 0)
                free(consumer); /* otherwise its interceptor may still be called */
}

/* Classify an error that came instead of a record. */
static enum consumer_result
classify(const struct consumer *consumer, const rd_kafka_message_t *message, int32_t *partition,
         struct error *error)
{
        char reason[256];
        rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(consumer->client, reason, sizeof(reason));

        if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) {
                (void)error_set(error, "%s", reason);
                return fatal == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID ? CONSUMER_FENCED : CONSUMER_BROKEN;
        }
        *partition = message->rkt == NULL ? RD_KAFKA_PARTITION_UA : message->partition;
        (void)error_set(error, "%s", rd_kafka_message_errstr(message));
        client_error_explain(consumer->client, message->err, error);
        switch (message->err) {
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
        case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
                return CONSUMER_BROKEN; /* librdkafka reports it once and does not retry */
        default:
                return *partition < 0 ? CONSUMER_TROUBLE : CONSUMER_LOST;
        }
}

/*
 * Return the next message, or NULL. After polling one message, take all queued ones as a batch, which costs a
 * third of polling each. The batch call would wait until the batch is full, so its timeout is 0.
 */
static rd_kafka_message_t *
next_message(struct consumer *consumer, int timeout_ms)
{
        rd_kafka_message_t *message;
        ssize_t n;

        if (consumer_has_polled(consumer))
                return consumer->ready[consumer->n_returned++];
        consumer_origins_polled(&consumer->origins);
        message = rd_kafka_consumer_poll(consumer->client, timeout_ms);
        consumer_origins_polled(&consumer->origins);
        if (message == NULL)
                return NULL;
        n = rd_kafka_consume_batch_queue(consumer->queue, 0, consumer->ready, READY_MAX);
        consumer->n_ready = n > 0 ? (size_t)n : 0;
        consumer->n_returned = 0;
        fetch_ahead_took(&consumer->ahead, &message, 1);
        fetch_ahead_took(&consumer->ahead, consumer->ready, consumer->n_ready);
        return message;
}

int
consumer_has_polled(const struct consumer *consumer)
{
        return consumer->n_returned < consumer->n_ready;
}

enum consumer_result
consumer_poll(struct consumer *consumer, int timeout_ms, rd_kafka_message_t **message, int32_t *partition,
              struct error *error)
{
        enum consumer_result result;

        *message = next_message(consumer, timeout_ms);
        if (*message == NULL)
                return CONSUMER_NOTHING;
        if ((*message)->err == RD_KAFKA_RESP_ERR_NO_ERROR)
                return CONSUMER_MESSAGE;
        if ((*message)->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
                return CONSUMER_END;
        result = classify(consumer, *message, partition, error);
        rd_kafka_message_destroy(*message);
        *message = NULL;
        return result;
}

int
consumer_assign(struct consumer *consumer, const rd_kafka_topic_partition_list_t *partitions,
                struct error *error)
{
        rd_kafka_resp_err_t err;

        drop_ready(consumer);
        consumer_origins_assigned(&consumer->origins);
        err = assign(consumer->client, partitions);
        return err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : error_set(error, "assign: %s", rd_kafka_err2str(err));
}

/* Drop the polled records of a partition. */
static void
drop_ready_of(struct consumer *consumer, int32_t partition)
{
        size_t kept = consumer->n_returned;

        for (size_t i = consumer->n_returned; i < consumer->n_ready; i++) {
                if (consumer->ready[i]->partition == partition)
                        rd_kafka_message_destroy(consumer->ready[i]);
                else
                        consumer->ready[kept++] = consumer->ready[i];
        }
        consumer->n_ready = kept;
}

int
consumer_seek(struct consumer *consumer, const char *topic, int32_t partition, int64_t offset,
              struct error *error)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_error_t *failure;
        rd_kafka_resp_err_t err;

        drop_ready_of(consumer, partition);
        rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
        failure = rd_kafka_seek_partitions(consumer->client, list, SEEK_TIMEOUT_MS);
        err = failure == NULL ? list->elems[0].err : rd_kafka_error_code(failure);
        if (failure != NULL)
                rd_kafka_error_destroy(failure);
        rd_kafka_topic_partition_list_destroy(list);
        return err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : error_set(error, "seek: %s", rd_kafka_err2str(err));
}

void
consumer_rejoin(struct consumer *consumer)
{
        struct error error;

        /*
         * A member that subscribes again joins again; if it is the leader, the group reassigns all
         * partitions.
         */
        (void)subscribe(consumer->client, consumer->topic, &error);
}

struct consumer_origin
consumer_origin(const struct consumer *consumer, const rd_kafka_message_t *message)
{
        return consumer_origins_of(&consumer->origins, rd_kafka_message_broker_id(message));
}

int
consumer_origin_is_current(const struct consumer *consumer, const struct consumer_origin *origin)
{
        return consumer_origins_is_current(&consumer->origins, origin);
}

rd_kafka_t *
consumer_client(const struct consumer *consumer)
{
        return consumer->client;
}
