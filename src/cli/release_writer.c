#include "cli/release_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/mem.h"
#include "kafka/client.h"
#include "kafka/client_error.h"
#include "kafka/message.h"
#include "model/judge.h"
#include "model/reverification.h"

#define MAX_IN_FLIGHT 50
#define POLL_MS 100
#define MAX_RECORD_BYTES "100000000" /* brokers accept requests of 100 MiB; topics have limits of their own */

struct release_writer {
        const struct config *config;
        rd_kafka_t *client;
        release_written *on_written;
};

/* A release on its way. */
struct release_job {
        struct release_id id;
        int is_delivered; /* Kafka has acknowledged the delivery; the marker is on its way */
        void *arg;
};

/* Report the end of a release, and free it. */
static void
finish_job(const struct release_writer *writer, struct release_job *job, const char *failure, int is_denied)
{
        writer->on_written(failure, is_denied, job->arg);
        free(job);
}

/* Append a record of a release. librdkafka copies it, and owns the headers. */
static void
append_record(struct release_writer *writer, struct release_job *job, const char *topic, int32_t partition,
              const rd_kafka_message_t *message, rd_kafka_headers_t *headers)
{
        size_t len = job->is_delivered ? 0 : message->len;
        rd_kafka_resp_err_t err =
            rd_kafka_producev(writer->client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                              RD_KAFKA_V_KEY(message->key, message->key_len),
                              RD_KAFKA_V_VALUE(len == 0 ? NULL : message->payload, len),
                              RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_OPAQUE(job), RD_KAFKA_V_END);

        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                return;
        rd_kafka_headers_destroy(headers);
        finish_job(writer, job, rd_kafka_err2str(err), client_is_denied(err));
}

static void
append_marker(struct release_writer *writer, struct release_job *job, const rd_kafka_message_t *delivery)
{
        rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
        char id[RELEASE_ID_SIZE];

        job->is_delivered = 1;
        (void)rd_kafka_header_add(headers, RECORD_RELEASED, -1, release_id_format(&job->id, id), -1);
        append_record(writer, job, writer->config->quarantine_topic, job->id.partition, delivery, headers);
}

static void
on_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
        struct release_writer *writer = opaque;
        struct release_job *job = message->_private;
        const char *reason = client_append_error(message);
        char failure[256];

        (void)client;
        if (reason != NULL) {
                (void)snprintf(failure, sizeof(failure), "%s: %s", rd_kafka_topic_name(message->rkt), reason);
                finish_job(writer, job, failure, client_is_denied(message->err));
        } else if (!job->is_delivered) {
                crash_point("release-delivered");
                append_marker(writer, job, message);
        } else {
                finish_job(writer, job, NULL, 0);
        }
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        client_error_log_all(conf);
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
}

struct release_writer *
release_writer_new(const struct config *config, const char *bootstrap, release_written *on_written,
                   struct error *error)
{
        struct release_writer *writer = mem_alloc(sizeof(*writer));
        char *timeout = mem_printf("%ld", client_append_timeout_ms(config));

        writer->config = config;
        writer->on_written = on_written;
        writer->client = client_new(RD_KAFKA_PRODUCER, config, bootstrap,
                                    (const struct client_property[]){
                                        {"message.timeout.ms", timeout, 1},
                                        {"acks", "all", 0},
                                        {"enable.idempotence", "true", 0},
                                        {"partitioner", "murmur2_random", 0},
                                        {"message.max.bytes", MAX_RECORD_BYTES, 0},
                                        {NULL, NULL, 0},
                                    },
                                    set_callbacks, writer, error);
        free(timeout);
        if (writer->client != NULL)
                return writer;
        free(writer);
        return NULL;
}

void
release_writer_free(struct release_writer *writer)
{
        if (writer == NULL)
                return;
        (void)client_destroy(writer->client);
        free(writer);
}

/* Sign a release, for routers that verify. The signature is empty if its source is not configured. */
static int
sign_release(const struct config *config, const rd_kafka_message_t *message, const char *id,
             char signature[RELEASE_SIGNATURE_SIZE])
{
        const struct config_source *source;
        struct record record;

        message_record(message, &record);
        record.released = (struct span){id, strlen(id)};
        signature[0] = '\0';
        source = config_find_source(config, record.source.data, record.source.len);
        if (source == NULL || record.key.len > JUDGE_TEXT_MAX)
                return 0;
        return reverification_sign_release(source->keys[0], &record, clock_now_ms() / 1000, signature);
}

/* Make the headers of the delivery: those of the record that a release keeps, and its own. */
static rd_kafka_headers_t *
make_headers(const rd_kafka_message_t *message, const char *id, const char *signature)
{
        rd_kafka_headers_t *original, *result = rd_kafka_headers_new(16);
        const char *name;
        const void *value;
        size_t len;

        if (rd_kafka_message_headers(message, &original) == RD_KAFKA_RESP_ERR_NO_ERROR) {
                for (size_t i = 0; rd_kafka_header_get_all(original, i, &name, &value, &len) == 0; i++) {
                        if (release_keeps_header(name))
                                (void)rd_kafka_header_add(result, name, -1, value,
                                                          value == NULL ? -1 : (ssize_t)len);
                }
        }
        (void)rd_kafka_header_add(result, RECORD_RELEASED, -1, id, -1);
        if (signature[0] != '\0')
                (void)rd_kafka_header_add(result, RECORD_RELEASE_SIGNATURE, -1, signature, -1);
        return result;
}

int
release_writer_add(struct release_writer *writer, const rd_kafka_message_t *message,
                   const struct release_id *id, void *arg, struct error *error)
{
        char text[RELEASE_ID_SIZE], signature[RELEASE_SIGNATURE_SIZE];
        struct release_job *job;

        (void)release_id_format(id, text);
        if (sign_release(writer->config, message, text, signature) != 0)
                return error_set_openssl(error, "the release cannot be signed");
        while (rd_kafka_outq_len(writer->client) >= MAX_IN_FLIGHT)
                (void)rd_kafka_poll(writer->client, POLL_MS);
        job = mem_alloc(sizeof(*job));
        *job = (struct release_job){.id = *id, .arg = arg};
        append_record(writer, job, writer->config->deliveries_topic, RD_KAFKA_PARTITION_UA, message,
                      make_headers(message, text, signature));
        return 0;
}

void
release_writer_finish(struct release_writer *writer)
{
        while (rd_kafka_outq_len(writer->client) > 0)
                (void)rd_kafka_poll(writer->client, POLL_MS);
}
