#include "kafka/transaction.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/mem.h"
#include "kafka/client.h"
#include "kafka/client_error.h"
#include "kafka/commit_watchdog.h"
#include "kafka/outage.h"
#include "kafka/responses.h"
#include "kafka/topics.h"

#define ABORT_TIMEOUT_MS 5000
#define EARLY_TIMEOUT_MS 1000
#define LINGER_MS "50" /* to fill requests meanwhile; a commit sends all that is left at once */
#define METADATA_TIMEOUT_MS 2000
#define POLL_EVERY 64 /* records: frees those that Kafka has accepted while their memory is in the cache */
#define REPORT_WAIT_MS 50
#define TOPIC_SIZE 256 /* Kafka allows 249 characters */

/*
 * Brokers accept requests of 100 MiB (socket.request.max.bytes). The limits of topics are checked by the
 * brokers.
 */
#define MAX_RECORD_BYTES 100000000
#define MAX_BATCH_BYTES 1000000

struct transaction {
        rd_kafka_t *client;
        struct commit_watchdog *watchdog;
        struct topics_kept topics; /* to which it will produce */
        int is_open;
        struct responses responses;
        void (*on_failure)(const struct transaction_failure *failure, void *arg);
        void *arg;
        int n_failures;
        struct error failure;           /* of the first failure */
        struct message_origins origins; /* of the records that were added since the last commit */
        char first_topic[TOPIC_SIZE];   /* of the first of these */
        int64_t slowest_ms;             /* see transaction_slowest_ms() */
};

/* Copy an error's text, and destroy it. Returns -1. */
static int
take_error(const struct transaction *transaction, rd_kafka_error_t *failure, const char *what,
           struct error *error)
{
        (void)error_set(error, "%s: %s (%s)", what, rd_kafka_error_string(failure),
                        rd_kafka_error_name(failure));
        client_error_explain(transaction->client, rd_kafka_error_code(failure), error);
        rd_kafka_error_destroy(failure);
        return -1;
}

/* Add the interceptor before the client has any connection. */
static rd_kafka_resp_err_t
on_new(rd_kafka_t *client, const rd_kafka_conf_t *conf, void *opaque, char *reason, size_t reason_size)
{
        struct transaction *transaction = rd_kafka_opaque(client);

        (void)conf, (void)opaque, (void)reason, (void)reason_size;
        return responses_watch(&transaction->responses, client);
}

static int
open_socket(int domain, int type, int protocol, void *opaque)
{
        const struct transaction *transaction = opaque;

        return commit_watchdog_open(transaction->watchdog, domain, type, protocol);
}

static int
close_socket(int fd, void *opaque)
{
        const struct transaction *transaction = opaque;

        return commit_watchdog_close(transaction->watchdog, fd);
}

/* The opaque pointer of a record is the index of its origin: the array may move. */
static size_t
index_of(const rd_kafka_message_t *message)
{
        return (size_t)(uintptr_t)message->_private;
}

/* Kafka does not accept a record, with this error and librdkafka's text for it. */
static void
fail(struct transaction *transaction, size_t index, const char *topic, rd_kafka_resp_err_t err,
     const char *text)
{
        struct error reason;
        const struct transaction_failure failure = {transaction->origins.items[index], topic, reason.text,
                                                    client_is_final(err)};

        client_error_of_topic(topic, err, text, &reason);
        if (transaction->n_failures++ == 0)
                transaction->failure = reason;
        if (transaction->on_failure != NULL)
                transaction->on_failure(&failure, transaction->arg);
}

/*
 * Called for every record. A commit waits for these reports: without a callback, librdkafka would check only
 * every 10 ms whether all records have arrived.
 */
static void
on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
        struct transaction *transaction = opaque;
        const char *reason = client_append_error(message);
        int64_t took_ms = rd_kafka_message_latency(message) / 1000;

        (void)client;
        if (took_ms > transaction->slowest_ms)
                transaction->slowest_ms = took_ms;
        if (reason != NULL && message->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE &&
            message->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
                fail(transaction, index_of(message), rd_kafka_topic_name(message->rkt), message->err, reason);
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rd_kafka_conf_set_socket_cb(conf, open_socket);
        rd_kafka_conf_set_closesocket_cb(conf, close_socket);
        (void)rd_kafka_conf_interceptor_add_on_new(conf, "gatepost", on_new, NULL);
}

static rd_kafka_t *
open_client(const struct config *config, const char *bootstrap, struct transaction *transaction,
            struct error *error)
{
        char *id = mem_printf("%s-%s", config->group, config->instance);
        char max_record[24], max_batch[24], timeout[24];
        const struct client_property properties[] = {
            {"transactional.id", id, 0},
            {"transaction.timeout.ms", "30000", 1},
            {"message.timeout.ms", timeout, 1},
            {"acks", "all", 0},
            {"enable.idempotence", "true", 0},
            {"partitioner", "murmur2_random", 0},
            {"message.max.bytes", max_record, 0},
            {"batch.size", max_batch, 0},
            {"queue.buffering.max.messages", "10000000", 0},
            {"queue.buffering.max.kbytes", "2147483647", 0},
            {"linger.ms", LINGER_MS, 1},
            {"retry.backoff.ms", "5", 1},
            {NULL, NULL, 0},
        };
        rd_kafka_t *client;

        (void)snprintf(timeout, sizeof(timeout), "%ld", client_append_timeout_ms(config));
        (void)snprintf(max_record, sizeof(max_record), "%d", MAX_RECORD_BYTES);
        (void)snprintf(max_batch, sizeof(max_batch), "%" PRId64,
                       config_max_record(config) < MAX_BATCH_BYTES ? config_max_record(config)
                                                                   : MAX_BATCH_BYTES);
        client =
            client_new(RD_KAFKA_PRODUCER, config, bootstrap, properties, set_callbacks, transaction, error);
        free(id);
        return client;
}

void
transaction_prefetch_topics(struct transaction *transaction, const struct config *config)
{
        topics_keep(&transaction->topics, transaction->client, config);
}

struct transaction *
transaction_new(const struct config *config, const char *bootstrap,
                void (*on_failure)(const struct transaction_failure *failure, void *arg), void *arg,
                struct error *error)
{
        struct transaction *transaction = mem_alloc(sizeof(*transaction));

        transaction->on_failure = on_failure;
        transaction->arg = arg;

        responses_init(&transaction->responses, config->embedded);
        transaction->watchdog = commit_watchdog_new(error);
        if (transaction->watchdog != NULL)
                transaction->client = open_client(config, bootstrap, transaction, error);
        if (transaction->client == NULL) {
                commit_watchdog_free(transaction->watchdog);
                free(transaction);
                return NULL;
        }
        transaction_prefetch_topics(transaction, config);
        return transaction;
}

/* Fetch the topics' leaders, so that the first record need not wait for them. */
static void
fetch_metadata(struct transaction *transaction)
{
        const struct rd_kafka_metadata *metadata;

        if (rd_kafka_metadata(transaction->client, 0, NULL, &metadata, METADATA_TIMEOUT_MS) == 0)
                rd_kafka_metadata_destroy(metadata);
}

int
transaction_init(struct transaction *transaction, int timeout_ms, struct error *error)
{
        rd_kafka_error_t *failure = rd_kafka_init_transactions(transaction->client, timeout_ms);
        int retriable;

        (void)rd_kafka_poll(transaction->client, 0);
        if (failure == NULL) {
                outage_end();
                fetch_metadata(transaction);
                return 0;
        }
        retriable = rd_kafka_error_is_retriable(failure);
        (void)take_error(transaction, failure, "init_transactions", error);
        return retriable ? 1 : -1;
}

void
transaction_wait_for_markers(struct transaction *transaction)
{
        begin_delay_wait(&transaction->responses.delay);
}

int
transaction_begin(struct transaction *transaction, struct error *error)
{
        rd_kafka_error_t *failure;

        atomic_store(&transaction->responses.is_any, 0);
        transaction->n_failures = 0;
        transaction->slowest_ms = 0;
        failure = rd_kafka_begin_transaction(transaction->client);
        if (failure != NULL)
                return take_error(transaction, failure, "begin_transaction", error);
        begin_delay_begun(&transaction->responses.delay);
        transaction->is_open = 1;
        return 0;
}

int
transaction_is_too_large(size_t bytes)
{
        return bytes > MAX_RECORD_BYTES - 65536;
}

int
transaction_produce(struct transaction *transaction, const char *topic, struct span key, struct span value,
                    rd_kafka_headers_t *headers, const struct message_origin *origin, struct error *error)
{
        size_t index = transaction->origins.n;
        static const char nothing[1] = "";
        const char *data = value.data == NULL ? nothing : value.data; /* an empty value, not a null one */
        rd_kafka_vu_t fields[] = {
            {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
            {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)key.data, key.len}},
            {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)data, value.len}},
            {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
            {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
            {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = (void *)(uintptr_t)index},
        };
        rd_kafka_error_t *failure;
        rd_kafka_resp_err_t err;

        if (message_origins_add(&transaction->origins, origin) != 0) {
                rd_kafka_headers_destroy(headers);
                return error_set(error, "out of memory");
        }
        if (index == 0)
                (void)snprintf(transaction->first_topic, sizeof(transaction->first_topic), "%s", topic);
        failure = rd_kafka_produceva(transaction->client, fields, ARRAY_LEN(fields));
        if (failure == NULL) {
                if (transaction->origins.n % POLL_EVERY == 0)
                        (void)rd_kafka_poll(transaction->client, 0);
                return 0;
        }
        rd_kafka_headers_destroy(headers);
        err = rd_kafka_error_code(failure);
        if (client_is_final(err) || client_is_denied(err) || err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
                fail(transaction, index, topic, err, rd_kafka_err2str(err));
        return take_error(transaction, failure, "produce", error);
}

/*
 * An error that follows from an earlier failure of the transaction does not tell its cause. When asked to
 * begin another transaction, librdkafka refuses with the cause.
 */
static rd_kafka_error_t *
find_cause(const struct transaction *transaction, rd_kafka_error_t *failure)
{
        rd_kafka_error_t *cause = NULL;

        if (rd_kafka_error_code(failure) == RD_KAFKA_RESP_ERR__STATE)
                cause = rd_kafka_begin_transaction(transaction->client);
        if (cause == NULL)
                return failure;
        rd_kafka_error_destroy(failure);
        return cause;
}

/*
 * Kafka does not say which topic of a transaction the account may not write to; with a single record it is
 * known.
 */
static int
take_commit_error(struct transaction *transaction, rd_kafka_error_t *failure, const char *what,
                  struct error *error)
{
        if (rd_kafka_error_code(failure) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED &&
            transaction->origins.n == 1 && transaction->n_failures == 0)
                fail(transaction, 0, transaction->first_topic, rd_kafka_error_code(failure),
                     rd_kafka_error_string(failure));
        return take_error(transaction, failure, what, error);
}

static int
commit(struct transaction *transaction, const rd_kafka_consumer_group_metadata_t *group,
       const rd_kafka_topic_partition_list_t *offsets, struct error *error)
{
        rd_kafka_error_t *failure;

        crash_point("before-offsets");
        failure = rd_kafka_send_offsets_to_transaction(transaction->client, offsets, group, -1);
        if (failure != NULL)
                return take_commit_error(transaction, find_cause(transaction, failure),
                                         "send_offsets_to_transaction", error);
        if (transaction_has_old_brokers(transaction))
                return error_set(error, "the brokers are older than Kafka 2.5, which the router needs");
        /*
         * All reports must arrive first: librdkafka would commit without a record that no broker has
         * confirmed.
         */
        (void)rd_kafka_flush(transaction->client, -1);
        if (transaction->n_failures > 0)
                return error_set(error, "%s", transaction->failure.text);
        crash_point("before-commit");
        failure = rd_kafka_commit_transaction(transaction->client, -1);
        crash_point("after-commit");
        return failure == NULL ? 0 : take_commit_error(transaction, failure, "commit_transaction", error);
}

int
transaction_commit(struct transaction *transaction, const rd_kafka_consumer_group_metadata_t *group,
                   const rd_kafka_topic_partition_list_t *offsets, struct error *error)
{
        int result;

        commit_watchdog_begin(transaction->watchdog);
        result = commit(transaction, group, offsets, error);
        commit_watchdog_end(transaction->watchdog);
        (void)rd_kafka_poll(transaction->client, 0);
        if (result == 0) {
                transaction->is_open = 0;
                transaction->origins.n = 0;
                begin_delay_committed(&transaction->responses.delay);
                outage_end();
        }
        return result;
}

/*
 * The report of a refused record comes after its transaction's failure, behind the reports of earlier
 * records.
 */
void
transaction_poll_reports(struct transaction *transaction)
{
        int64_t until_ms = clock_monotonic_ms() + REPORT_WAIT_MS;

        for (int64_t left_ms = REPORT_WAIT_MS; transaction->n_failures == 0 && left_ms > 0;
             left_ms = until_ms - clock_monotonic_ms())
                (void)rd_kafka_poll(transaction->client, (int)left_ms);
}

int64_t
transaction_slowest_ms(const struct transaction *transaction)
{
        return transaction->slowest_ms;
}

int
transaction_is_tainted(struct transaction *transaction)
{
        return atomic_load(&transaction->responses.is_tainted);
}

int
transaction_has_old_brokers(struct transaction *transaction)
{
        return atomic_load(&transaction->responses.is_unfenced);
}

static void
abort_within(struct transaction *transaction, int timeout_ms)
{
        rd_kafka_error_t *failure;

        if (!transaction->is_open)
                return;
        failure = rd_kafka_abort_transaction(transaction->client, timeout_ms);
        if (failure != NULL)
                rd_kafka_error_destroy(failure);
        transaction->is_open = 0;
}

void
transaction_abort(struct transaction *transaction)
{
        abort_within(transaction, ABORT_TIMEOUT_MS);
}

/*
 * Destroying a producer while it sends the first AddPartitionsToTxn of a transaction may abort the process:
 * librdkafka's main thread queues the request before it counts it (txn_req_cnt); in between, a broker's
 * thread, which fails all queued requests of a producer that is being destroyed, may assert that the count is
 * positive (2.0.2 to 2.12.1). So abort the transaction first, as long as no request was answered. The abort
 * starts in the main thread, too, so never during the sending, and stops further AddPartitionsToTxn. Later it
 * is not needed: answered requests stay counted. It would also be inferior then to the next producer's
 * transaction_init(), since a record may be late; before the first answer none was sent.
 */
static void
abort_early(struct transaction *transaction)
{
        if (!atomic_load(&transaction->responses.is_any))
                abort_within(transaction, EARLY_TIMEOUT_MS);
}

void
transaction_free(struct transaction *transaction)
{
        if (transaction == NULL)
                return;
        abort_early(transaction);
        topics_release(&transaction->topics);
        transaction->on_failure = NULL;
        (void)client_purge(transaction->client);
        if (client_destroy(transaction->client) != 0)
                return; /* its callbacks may still be called: leak everything with it */
        free(transaction->origins.items);
        commit_watchdog_free(transaction->watchdog);
        free(transaction);
}
