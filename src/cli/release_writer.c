#include "cli/release_writer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "cli/kafka_access.h"
#include "kafka/client.h"
#include "kafka/client_error.h"
#include "kafka/message.h"

#define ABORT_TIMEOUT_MS 5000
#define COMMIT_TIMEOUT_MS 30000
#define MAX_BYTES (4 << 20) /* of the bodies in a transaction */
#define MAX_RECORDS 500
#define MAX_RECORD_BYTES "100000000" /* brokers accept requests of 100 MiB; topics have limits of their own */

struct release_writer {
        const struct config *config;
        rd_kafka_t *client;
        int is_open; /* a transaction is */
        size_t n;    /* releases in it */
        size_t len;  /* bytes of their bodies */
        int is_denied;
        int n_failures;       /* records of the transaction that Kafka did not accept */
        struct error failure; /* of the first one */
};

static void
on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
        struct release_writer *writer = opaque;
        const char *reason = client_append_error(message);

        (void)client;
        if (reason == NULL || message->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
            message->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
                return; /* purged because the transaction failed, which says why */
        writer->is_denied |= client_is_denied(message->err);
        if (writer->n_failures++ == 0)
                (void)error_set(&writer->failure, "%s: %s", rd_kafka_topic_name(message->rkt), reason);
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        client_error_log_all(conf);
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
}

/* Take an error of the transaction, which the failure of a record explains better. Returns -1. */
static int
take_error(struct release_writer *writer, rd_kafka_error_t *failure, struct error *error)
{
        writer->is_denied |= client_is_denied(rd_kafka_error_code(failure));
        if (writer->n_failures > 0)
                *error = writer->failure;
        else
                (void)error_set(error, "%s", rd_kafka_error_string(failure));
        client_error_explain(writer->client, rd_kafka_error_code(failure), error);
        rd_kafka_error_destroy(failure);
        return -1;
}

static rd_kafka_t *
open_client(struct release_writer *writer, const char *bootstrap, struct error *error)
{
        const struct config *config = writer->config;
        uint64_t number = 0;
        char *id, *timeout = mem_printf("%ld", client_append_timeout_ms(config));
        rd_kafka_t *client;

        if (getrandom(&number, sizeof(number), 0) < 0)
                number = (uint64_t)(uintptr_t)writer;
        id = mem_printf("%s.release-%016llx", config->topics_prefix, (unsigned long long)number);
        client = client_new(RD_KAFKA_PRODUCER, config, bootstrap,
                            (const struct client_property[]){
                                {"transactional.id", id, 0},
                                {"transaction.timeout.ms", "30000", 1},
                                {"message.timeout.ms", timeout, 1},
                                {"acks", "all", 0},
                                {"enable.idempotence", "true", 0},
                                {"partitioner", "murmur2_random", 0},
                                {"message.max.bytes", MAX_RECORD_BYTES, 0},
                                {NULL, NULL, 0},
                            },
                            set_callbacks, writer, error);
        free(timeout);
        free(id);
        return client;
}

struct release_writer *
release_writer_new(const struct config *config, const char *bootstrap, struct error *error)
{
        struct release_writer *writer = mem_alloc(sizeof(*writer));

        writer->config = config;
        writer->client = open_client(writer, bootstrap, error);
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
        if (writer->is_open)
                rd_kafka_error_destroy(rd_kafka_abort_transaction(writer->client, ABORT_TIMEOUT_MS));
        (void)client_destroy(writer->client);
        free(writer);
}

/* Begin a transaction; the first one asks Kafka for a producer id. */
static int
begin(struct release_writer *writer, struct error *error)
{
        rd_kafka_error_t *failure = rd_kafka_begin_transaction(writer->client);

        if (failure != NULL && rd_kafka_error_code(failure) == RD_KAFKA_RESP_ERR__STATE) {
                rd_kafka_error_destroy(failure);
                failure = rd_kafka_init_transactions(writer->client, KAFKA_ACCESS_TIMEOUT_MS);
                if (failure == NULL)
                        failure = rd_kafka_begin_transaction(writer->client);
        }
        writer->n = writer->len = 0;
        writer->n_failures = 0;
        if (failure != NULL)
                return take_error(writer, failure, error);
        writer->is_open = 1;
        return 0;
}

/* Make the headers of the delivery: those of the record that a release keeps, and its own. */
static rd_kafka_headers_t *
make_headers(const rd_kafka_message_t *message, const struct release_headers *added, const char *id)
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
        if (added->signature[0] != '\0')
                (void)rd_kafka_header_add(result, RECORD_RELEASE_SIGNATURE, -1, added->signature, -1);
        return result;
}

/* Append a record, whose headers librdkafka frees. */
static int
append(struct release_writer *writer, const char *topic, int32_t partition, const rd_kafka_message_t *message,
       size_t len, rd_kafka_headers_t *headers, struct error *error)
{
        rd_kafka_resp_err_t err =
            rd_kafka_producev(writer->client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                              RD_KAFKA_V_KEY(message->key, message->key_len),
                              RD_KAFKA_V_VALUE(len == 0 ? NULL : message->payload, len),
                              RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_END);

        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                return 0;
        rd_kafka_headers_destroy(headers);
        return error_set(error, "%s: %s", topic, rd_kafka_err2str(err));
}

/* The marker goes to the partition of the record, so that it comes after it, and is deleted after it. */
int
release_writer_add(struct release_writer *writer, const rd_kafka_message_t *message,
                   const struct release_headers *headers, struct error *error)
{
        const struct config *config = writer->config;
        rd_kafka_headers_t *marker;
        char id[RELEASE_ID_SIZE];

        if (!writer->is_open && begin(writer, error) != 0)
                return -1;
        (void)release_id_format(&headers->id, id);
        if (append(writer, config->deliveries_topic, RD_KAFKA_PARTITION_UA, message, message->len,
                   make_headers(message, headers, id), error) != 0)
                return -1;
        marker = rd_kafka_headers_new(1);
        (void)rd_kafka_header_add(marker, RECORD_RELEASED, -1, id, -1);
        if (append(writer, config->quarantine_topic, headers->id.partition, message, 0, marker, error) != 0)
                return -1;
        writer->n++;
        writer->len += message->len;
        return 0;
}

int
release_writer_is_full(const struct release_writer *writer)
{
        return writer->n >= MAX_RECORDS || writer->len >= MAX_BYTES;
}

int
release_writer_commit(struct release_writer *writer, struct error *error)
{
        rd_kafka_error_t *failure;

        if (!writer->is_open)
                return 0;
        writer->is_open = 0;
        failure = rd_kafka_commit_transaction(writer->client, COMMIT_TIMEOUT_MS);
        if (failure == NULL)
                return 0;
        if (rd_kafka_error_txn_requires_abort(failure))
                rd_kafka_error_destroy(rd_kafka_abort_transaction(writer->client, ABORT_TIMEOUT_MS));
        return take_error(writer, failure, error);
}

int
release_writer_is_denied(const struct release_writer *writer)
{
        return writer->is_denied;
}
