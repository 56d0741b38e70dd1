#include "kafka/producer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kafka/client.h"
#include "kafka/outage.h"

#define END_LIMIT_S 1
#define PATIENT_MS UINT64_C(30000)

struct producer {
        rd_kafka_t *client;
        rd_kafka_topic_t *topic;
        producer_report *report;
        void *arg;
        atomic_int has_id;
        void (*statistics)(const struct statistics_totals *totals, void *arg); /* NULL: not wanted */
};

static void
on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
        struct producer *producer = opaque;
        const struct producer_outcome outcome = {
            .failure = client_append_error(message),
            .may_be_there = rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED,
            .is_final = client_is_final(message->err),
        };

        (void)client;
        if (outcome.failure == NULL)
                outage_end();
        producer->report(message->_private, &outcome, producer->arg);
}

/*
 * librdkafka has no other way to tell whether an idempotent producer has its id, without which nothing is
 * appended. A report that cannot be read, because memory failed, changes nothing.
 */
static int
on_statistics(rd_kafka_t *client, char *json, size_t len, void *opaque)
{
        struct producer *producer = opaque;
        struct statistics statistics;

        (void)client;
        if (statistics_read(&statistics, json, len) == 0) {
                atomic_store(&producer->has_id, statistics.has_producer_id);
                if (producer->statistics != NULL)
                        producer->statistics(&statistics.totals, producer->arg);
        }
        return 0; /* librdkafka frees the text */
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        rd_kafka_conf_set_stats_cb(conf, on_statistics);
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
}

/* Return after how many ms a record fails. */
static uint64_t
record_timeout(const struct config *config, unsigned patience)
{
        uint64_t timeout_ms = config->ack_timeout_ms * patience;

        if (timeout_ms > PATIENT_MS)
                timeout_ms = PATIENT_MS;
        return timeout_ms > config->ack_timeout_ms ? timeout_ms : config->ack_timeout_ms;
}

uint64_t
producer_longest_wait_ms(const struct config *config)
{
        return record_timeout(config, UINT_MAX);
}

static rd_kafka_t *
open_client(const struct config *config, const char *bootstrap, struct producer_manner manner,
            struct producer *producer, struct error *error)
{
        const char *linger_ms = manner.batching == PRODUCER_BULK ? "20" : "0.5";
        char max_record[24], timeout[24];
        const struct client_property properties[] = {
            {"acks", "all", 0},
            {"enable.idempotence", "true", 0},
            {"partitioner", "murmur2_random", 0},
            {"message.max.bytes", max_record, 0},
            {"message.timeout.ms", timeout, 0},
            {"queue.buffering.max.messages", "10000000", 0},
            {"queue.buffering.max.kbytes", "2147483647",
             0},                                  /* max_in_flight limits it, which a reload may change */
            {"linger.ms", linger_ms, 1},          /* larger requests, less work per delivery */
            {"statistics.interval.ms", "250", 0}, /* see producer_has_id() */
            {manner.batching == PRODUCER_SINGLE ? "batch.num.messages" : NULL, "1", 0},
            {NULL, NULL, 0},
        };

        (void)snprintf(max_record, sizeof(max_record), "%" PRId64, config_max_record(config));
        (void)snprintf(timeout, sizeof(timeout), "%" PRIu64, record_timeout(config, manner.patience));
        return client_new(RD_KAFKA_PRODUCER, config, bootstrap, properties, set_callbacks, producer, error);
}

/*
 * librdkafka writes to the descriptor when its queue becomes non-empty. An event that was queued before (no
 * broker is reachable, within microseconds) would prevent that forever: so have the queue served once.
 */
static void
wake_through(struct producer *producer, int wake_fd)
{
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(producer->client);
        ssize_t written;

        rd_kafka_queue_io_event_enable(queue, wake_fd, "r", 1);
        rd_kafka_queue_destroy(queue);
        written = write(wake_fd, "r", 1);
        (void)written; /* a full pipe wakes as well */
}

struct producer *
producer_new(const struct config *config, const char *bootstrap, struct producer_manner manner, int wake_fd,
             producer_report *report, void *arg, struct error *error)
{
        struct producer *producer = calloc(1, sizeof(*producer));

        if (producer == NULL) {
                (void)error_set(error, "out of memory");
                return NULL;
        }
        producer->report = report;
        producer->arg = arg;
        producer->client = open_client(config, bootstrap, manner, producer, error);
        if (producer->client == NULL) {
                free(producer);
                return NULL;
        }
        producer->topic = rd_kafka_topic_new(producer->client, config->deliveries_topic, NULL);
        wake_through(producer, wake_fd);
        return producer;
}

void
producer_watch(struct producer *producer,
               void (*statistics)(const struct statistics_totals *totals, void *arg))
{
        producer->statistics = statistics;
}

void
producer_connect(struct producer *producer, int timeout_ms)
{
        const struct rd_kafka_metadata *metadata;

        if (rd_kafka_metadata(producer->client, 0, producer->topic, &metadata, timeout_ms) == 0)
                rd_kafka_metadata_destroy(metadata);
}

/* Stop writing to the descriptor, which may soon be another file's. */
static void
stop_waking(struct producer *producer)
{
        rd_kafka_queue_t *queue = rd_kafka_queue_get_main(producer->client);

        rd_kafka_queue_io_event_enable(queue, -1, NULL, 0);
        rd_kafka_queue_destroy(queue);
}

/*
 * A leaked client calls none of our callbacks: they are called from rd_kafka_poll() only, and librdkafka
 * drops unpolled events.
 */
void
producer_free(struct producer *producer)
{
        int left;

        if (producer == NULL)
                return;
        left = client_purge(producer->client);
        stop_waking(producer);
        rd_kafka_topic_destroy(producer->topic);
        (void)client_destroy_within(producer->client, left > 0 ? 0 : END_LIMIT_S);
        free(producer);
}

int
producer_append(struct producer *producer, struct producer_record *record, struct error *error)
{
        static char empty[1]; /* NULL would make a record without a value */
        void *body = record->body_len == 0 ? empty : record->body;
        int flags = record->body_len == 0 ? RD_KAFKA_MSG_F_COPY
                    : record->keeps_body  ? 0
                                          : RD_KAFKA_MSG_F_FREE;
        rd_kafka_vu_t fields[] = {
            {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = producer->topic},
            {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)record->key.data, record->key.len}},
            {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {body, record->body_len}},
            {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = flags},
            {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = record->arg},
            {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = record->headers},
        };
        rd_kafka_error_t *failure =
            rd_kafka_produceva(producer->client, fields, ARRAY_LEN(fields) - (record->headers == NULL));

        if (failure == NULL) {
                if (record->body_len == 0 && !record->keeps_body)
                        free(record->body);
                return 0;
        }
        (void)error_set(error, "%s", rd_kafka_error_string(failure));
        record->is_final = client_is_final(rd_kafka_error_code(failure));
        rd_kafka_error_destroy(failure);
        if (record->headers != NULL)
                rd_kafka_headers_destroy(record->headers);
        return -1;
}

void
producer_serve(struct producer *producer)
{
        while (rd_kafka_poll(producer->client, 0) > 0)
                ;
}

int
producer_has_id(const struct producer *producer)
{
        return atomic_load(&producer->has_id);
}

int
producer_is_broken(const struct producer *producer, struct error *error)
{
        return rd_kafka_fatal_error(producer->client, error->text, sizeof(error->text)) !=
               RD_KAFKA_RESP_ERR_NO_ERROR;
}
