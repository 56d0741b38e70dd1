#include "kafka/client.h"
#include "kafka/client_error.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "config/kafka_properties.h"
#include "kafka/fetch_ahead.h"
#include "kafka/outage.h"

#define APPEND_TIMEOUT_MS 15000
#define DESTROY_TIMEOUT_S 5
#define REPORT_TIMEOUT_MS 1000 /* for reports on purged records, which usually come within milliseconds */
#define REPORT_POLL_MS 100
#define TIMER_SLACK_NS 1000000

static void
on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
        char quoted[LOG_QUOTED_SIZE];

        (void)rk;
        if (strcmp(facility, "FATAL") == 0)
                return; /* the call that failed returns it, too */
        (void)log_quote_bytes(text, outage_shown_len(text), quoted);
        log_line(level < LOG_LEVEL_WARNING ? LOG_LEVEL_WARNING : (enum log_level)level,
                 "librdkafka facility=%s text=%s", facility, quoted);
}

static int
set(rd_kafka_conf_t *conf, const char *name, const char *value, struct error *error)
{
        char reason[256];

        if (rd_kafka_conf_set(conf, name, value, reason, sizeof(reason)) == RD_KAFKA_CONF_OK)
                return 0;
        return error_set(error, "kafka property %s: %s", name, reason);
}

/* Set the properties that yield, or the others. */
static int
set_some(rd_kafka_conf_t *conf, const struct client_property *properties, int yields, struct error *error)
{
        for (; properties != NULL && properties->name != NULL; properties++) {
                if (properties->yields == yields &&
                    set(conf, properties->name, properties->value, error) != 0)
                        return -1;
        }
        return 0;
}

/*
 * Keep librdkafka from running kinit through the shell, with the principal and the keytab unquoted in the
 * command. A librdkafka without Kerberos rejects these properties, and runs nothing.
 */
static void
forbid_kinit(rd_kafka_conf_t *conf)
{
        (void)rd_kafka_conf_set(conf, "sasl.kerberos.min.time.before.relogin", "0", NULL, 0);
        (void)rd_kafka_conf_set(conf, "sasl.kerberos.kinit.cmd", "", NULL, 0);
}

static int
set_all(rd_kafka_conf_t *conf, const struct config *config, const char *bootstrap,
        const struct client_property *properties, struct error *error)
{
        int debug = 0;

        /* Reconnect soon: by default librdkafka waits up to ten seconds between attempts. */
        if (set(conf, "client.id", "gatepost", error) != 0 ||
            set(conf, "reconnect.backoff.max.ms", "500", error) != 0 ||
            set_some(conf, properties, 1, error) != 0)
                return -1;
        for (size_t i = 0; i < config->n_kafka; i++) {
                if (set(conf, config->kafka[i].name, config->kafka[i].value, error) != 0)
                        return -1;
                debug |= strcmp(config->kafka[i].name, "debug") == 0;
        }
        if (bootstrap != NULL && set(conf, "bootstrap.servers", bootstrap, error) != 0)
                return -1;
        /* Topics are created by `gatepost topics create` only. */
        if (set(conf, "allow.auto.create.topics", "false", error) != 0 ||
            set_some(conf, properties, 0, error) != 0)
                return -1;
        forbid_kinit(conf);
        return debug || set(conf, "log_level", "0", error) == 0 ? 0 : -1;
}

/*
 * An interceptor. For its next timer librdkafka 2.0.2 waits a number of milliseconds, rounded down, and is
 * busy for the rest of the last one. Let the kernel end these waits up to a millisecond late instead.
 */
static rd_kafka_resp_err_t
on_thread_start(rd_kafka_t *client, rd_kafka_thread_type_t type, const char *name, void *opaque)
{
        (void)client, (void)name, (void)opaque;
        if (type == RD_KAFKA_THREAD_MAIN)
                (void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Another, called before the client has any thread. Notes that it was called. */
static rd_kafka_resp_err_t
on_new(rd_kafka_t *client, const rd_kafka_conf_t *conf, void *opaque, char *reason, size_t reason_size)
{
        int *was_called = opaque;

        (void)conf, (void)reason, (void)reason_size;
        *was_called = 1;
        return rd_kafka_interceptor_add_on_thread_start(client, "gatepost-threads", on_thread_start, NULL);
}

/*
 * Destroy the conf of a client that could not be created. If that failed after the interceptors on_new were
 * called, librdkafka 2.0.2 has freed those of the conf, and would do so again: then leave it, some KiB.
 */
static void
destroy_conf(rd_kafka_conf_t *conf, int was_called)
{
        static rd_kafka_conf_t *volatile left; /* for tools that look for leaks */

        if (was_called)
                left = conf;
        else
                rd_kafka_conf_destroy(conf);
        (void)left;
}

rd_kafka_t *
client_new(rd_kafka_type_t type, const struct config *config, const char *bootstrap,
           const struct client_property *properties, void (*setup)(rd_kafka_conf_t *conf), void *arg,
           struct error *error)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char reason[256];
        rd_kafka_t *client;
        int was_called = 0;

        if (set_all(conf, config, bootstrap, properties, error) != 0) {
                rd_kafka_conf_destroy(conf);
                return NULL;
        }
        rd_kafka_conf_set_opaque(conf, arg);
        rd_kafka_conf_set_log_cb(conf, on_log);
        (void)rd_kafka_conf_interceptor_add_on_new(conf, "gatepost-threads", on_new, &was_called);
        if (setup != NULL)
                setup(conf);
        client = rd_kafka_new(type, conf, reason, sizeof(reason));
        if (client == NULL) {
                destroy_conf(conf, was_called);
                (void)error_set(error, "cannot create a Kafka client: %s", reason);
        }
        return client;
}

rd_kafka_t *
client_new_reader(const struct config *config, const char *bootstrap, struct error *error)
{
        const struct client_property properties[] = {
            {"group.id", "gatepost-reader", 0}, /* librdkafka requires one; the client never joins it */
            {"enable.auto.commit", "false", 0},
            {"enable.auto.offset.store", "false", 0},
            {"auto.offset.reset", "error", 0}, /* a deleted record must not go unnoticed */
            {"isolation.level", "read_committed", 0},
            {"enable.partition.eof", "true", 0},
            {"fetch.error.backoff.ms", "50", 1},
            {"session.timeout.ms", KAFKA_SESSION_TIMEOUT_MS, 1},
            {"fetch.wait.max.ms", "100", 1}, /* its end waits for the last fetch */
            {"queued.max.messages.kbytes", fetch_ahead_limit(config), 1},
            {fetch_ahead_backoff(), FETCH_AHEAD_BACKOFF_MS, 1},
            {NULL, NULL, 0},
        };
        rd_kafka_t *client =
            client_new(RD_KAFKA_CONSUMER, config, bootstrap, properties, client_error_log_all, NULL, error);

        if (client != NULL)
                (void)rd_kafka_poll_set_consumer(client);
        return client;
}

int
client_purge(rd_kafka_t *client)
{
        int64_t until = clock_monotonic_ms() + REPORT_TIMEOUT_MS;
        int left;

        (void)rd_kafka_purge(client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                         RD_KAFKA_PURGE_F_NON_BLOCKING);
        while ((left = rd_kafka_outq_len(client)) > 0 && clock_monotonic_ms() < until)
                (void)rd_kafka_poll(client, REPORT_POLL_MS);
        return left;
}

static void *
destroy(void *client)
{
        rd_kafka_destroy(client);
        return NULL;
}

int
client_destroy_within(rd_kafka_t *client, int seconds)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, destroy, client) != 0) {
                rd_kafka_destroy(client);
        } else if (process_join_within(thread, seconds) != 0) {
                (void)pthread_detach(thread);
                log_warning("a client of librdkafka does not shut down; leaking it waited_seconds=%d",
                            seconds);
                return -1;
        }
        return 0;
}

int
client_destroy(rd_kafka_t *client)
{
        return client_destroy_within(client, DESTROY_TIMEOUT_S);
}

long
client_append_timeout_ms(const struct config *config)
{
        long timeout_ms = APPEND_TIMEOUT_MS;

        for (size_t i = 0; i < config->n_kafka; i++) {
                long configured = strtol(config->kafka[i].value, NULL, 10);

                if (strcmp(config->kafka[i].name, "transaction.timeout.ms") == 0 && configured < timeout_ms)
                        timeout_ms = configured;
        }
        return timeout_ms;
}

int
client_is_denied(rd_kafka_resp_err_t err)
{
        return err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
               err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
               err == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED ||
               err == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
}

/* Every broker has Metadata, so librdkafka misses it only at the listener of a KRaft controller. */
int
client_unreachable(rd_kafka_t *client, rd_kafka_resp_err_t err, struct error *error)
{
        char cause[OUTAGE_CAUSE_SIZE];

        (void)rd_kafka_poll(client, 0);
        if (err == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
                return error_set(error,
                                 "Kafka cannot be reached: %s; is this the listener of a KRaft controller? "
                                 "bootstrap.servers needs that of a broker",
                                 rd_kafka_err2str(err));
        return error_set(error, "Kafka cannot be reached: %s",
                         outage_find_cause(cause) ? cause : rd_kafka_err2str(err));
}

/*
 * librdkafka reports success for a record whose request was refused when a later request of the same producer
 * is accepted ("implicit ack", 2.0.2 and later). But a leader that does not know the producer accepts any
 * first sequence number, so the record may be in no log. Such a report has no offset.
 */
const char *
client_append_error(const rd_kafka_message_t *report)
{
        if (report->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
                return "Broker: Message size too large; raise max.message.bytes of the topic";
        if (report->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return rd_kafka_err2str(report->err);
        return report->offset < 0 ? "no broker has confirmed it" : NULL;
}

int
client_is_final(rd_kafka_resp_err_t err)
{
        switch (err) {
        case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
        case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
        case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
        case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
        case RD_KAFKA_RESP_ERR_INVALID_RECORD:
        case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
                return 1;
        default:
                return 0;
        }
}

rd_kafka_resp_err_t
client_ask_topic(rd_kafka_t *client, const char *topic, int timeout_ms, rd_kafka_resp_err_t *topic_err,
                 char broker[STATISTICS_NAME_SIZE])
{
        rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t err;

        if (handle == NULL)
                return rd_kafka_last_error();
        *topic_err = RD_KAFKA_RESP_ERR_NO_ERROR;
        err = rd_kafka_metadata(client, 0, handle, &metadata, timeout_ms);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                if (metadata->topic_cnt == 1)
                        *topic_err = metadata->topics[0].err;
                if (broker != NULL)
                        (void)snprintf(broker, STATISTICS_NAME_SIZE, "%s", metadata->orig_broker_name);
                rd_kafka_metadata_destroy(metadata);
        }
        rd_kafka_topic_destroy(handle);
        return err;
}

int
client_is_hidden(rd_kafka_t *client, const char *topic, int timeout_ms)
{
        rd_kafka_resp_err_t topic_err;

        return client_ask_topic(client, topic, timeout_ms, &topic_err, NULL) == RD_KAFKA_RESP_ERR_NO_ERROR &&
               client_is_denied(topic_err);
}

rd_kafka_resp_err_t
client_query_times(rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms)
{
        rd_kafka_resp_err_t err = rd_kafka_offsets_for_times(client, partitions, timeout_ms);

        for (int i = 0; err == RD_KAFKA_RESP_ERR_NO_ERROR && i < partitions->cnt; i++)
                err = partitions->elems[i].err;
        return err;
}

rd_kafka_resp_err_t
client_query_ends(rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int64_t end,
                  int timeout_ms)
{
        for (int i = 0; i < partitions->cnt; i++)
                partitions->elems[i].offset = end;
        return client_query_times(client, partitions, timeout_ms);
}
