/*
 * The lower bound for a router: copies each record of a topic to another in transactions, with the router's
 * properties, but decides and remembers nothing.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "client.h"

#define MAX_BATCH 30000
#define WAKE_EVERY 256 /* records */
#define POLL_MS 100
#define START_MS 30000

struct relay {
        rd_kafka_t *consumer, *producer;
        const char *to;
        rd_kafka_topic_partition_list_t *offsets; /* to commit with the open transaction */
        int n_taken;                              /* records in it; 0: no transaction is open */
        int is_ready;
        uint64_t n_routed;
};

static volatile sig_atomic_t stopping;

static void
on_signal(int number)
{
        (void)number;
        stopping = 1;
}

static void
must(const char *what, rd_kafka_error_t *error)
{
        if (error != NULL)
                client_fail(what, rd_kafka_error_string(error));
}

/* Without a delivery callback, librdkafka only checks every 10 ms whether all records are acknowledged. */
static void
on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
        (void)client, (void)message, (void)opaque;
}

/* Whether librdkafka looks at a full queue only once a second unless it is woken; see src/kafka/fetch_ahead.h. */
static int
must_wake(void)
{
        return rd_kafka_version() < 0x02020000;
}

static void
start(struct relay *relay, const char *bootstrap, const char *from, const char *id)
{
        const struct property reads[] = {
            {"bootstrap.servers", bootstrap},
            {"group.id", id},
            {"enable.auto.commit", "false"},
            {"enable.auto.offset.store", "false"},
            {"auto.offset.reset", "earliest"},
            {"queued.min.messages", "1000000"},
            {"queued.max.messages.kbytes", "8192"},
            {"fetch.error.backoff.ms", "50"},
            {must_wake() ? NULL : "fetch.queue.backoff.ms", "10"},
            {NULL, NULL},
        };
        const struct property writes[] = {
            {"bootstrap.servers", bootstrap},
            {"transactional.id", id},
            {"partitioner", "murmur2_random"},
            {"message.max.bytes", "2000000"},
            {"queue.buffering.max.messages", "10000000"},
            {"queue.buffering.max.kbytes", "2147483647"},
            {"linger.ms", "50"},
            {"retry.backoff.ms", "5"},
            {NULL, NULL},
        };
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_conf_t *conf;

        conf = client_conf(writes);
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        relay->producer = client_open(RD_KAFKA_PRODUCER, conf);
        must("init_transactions", rd_kafka_init_transactions(relay->producer, START_MS));
        relay->consumer = client_open(RD_KAFKA_CONSUMER, client_conf(reads));
        rd_kafka_topic_partition_list_add(topics, from, RD_KAFKA_PARTITION_UA);
        if (rd_kafka_subscribe(relay->consumer, topics) != RD_KAFKA_RESP_ERR_NO_ERROR)
                client_fail("subscribe", from);
        rd_kafka_topic_partition_list_destroy(topics);
        relay->offsets = rd_kafka_topic_partition_list_new(8);
}

/* Make the headers of an event; only the id depends on the record. */
static rd_kafka_headers_t *
headers_for(const rd_kafka_message_t *message)
{
        rd_kafka_headers_t *headers = rd_kafka_headers_new(7);

        (void)rd_kafka_header_add(headers, "content-type", -1, "application/json", -1);
        (void)rd_kafka_header_add(headers, "ce_specversion", -1, "1.0", -1);
        (void)rd_kafka_header_add(headers, "ce_id", -1, message->key, (ssize_t)message->key_len);
        (void)rd_kafka_header_add(headers, "ce_type", -1, "invoice.accepted", -1);
        (void)rd_kafka_header_add(headers, "ce_source", -1, "/invoicing", -1);
        (void)rd_kafka_header_add(headers, "ce_time", -1, "2026-01-01T00:00:00Z", -1);
        (void)rd_kafka_header_add(headers, "ce_webhookid", -1, "bench", -1);
        return headers;
}

static void
take(struct relay *relay, const rd_kafka_message_t *message)
{
        const char *topic = rd_kafka_topic_name(message->rkt);
        rd_kafka_topic_partition_t *offset =
            rd_kafka_topic_partition_list_find(relay->offsets, topic, message->partition);

        if (relay->n_taken++ == 0)
                must("begin_transaction", rd_kafka_begin_transaction(relay->producer));
        if (relay->n_taken % WAKE_EVERY == 0 && must_wake())
                must("wake", rd_kafka_sasl_set_credentials(relay->consumer, "", ""));
        if (offset == NULL)
                offset = rd_kafka_topic_partition_list_add(relay->offsets, topic, message->partition);
        offset->offset = message->offset + 1;
        if (rd_kafka_producev(relay->producer, RD_KAFKA_V_TOPIC(relay->to),
                              RD_KAFKA_V_KEY("invoice.accepted", sizeof("invoice.accepted") - 1),
                              RD_KAFKA_V_VALUE(message->payload, message->len),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_HEADERS(headers_for(message)),
                              RD_KAFKA_V_END) != RD_KAFKA_RESP_ERR_NO_ERROR)
                client_fail("produce", relay->to);
}

static void
commit(struct relay *relay)
{
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(relay->consumer);

        must("send_offsets",
             rd_kafka_send_offsets_to_transaction(relay->producer, relay->offsets, group, -1));
        must("commit", rd_kafka_commit_transaction(relay->producer, -1));
        (void)rd_kafka_poll(relay->producer, 0);
        rd_kafka_consumer_group_metadata_destroy(group);
        rd_kafka_topic_partition_list_destroy(relay->offsets);
        relay->offsets = rd_kafka_topic_partition_list_new(8);
        relay->n_routed += (uint64_t)relay->n_taken;
        relay->n_taken = 0;
        printf("routed %" PRIu64 "\n", relay->n_routed);
        (void)fflush(stdout);
}

/* Print `ready` when partitions are assigned for the first time. */
static void
report_ready(struct relay *relay)
{
        rd_kafka_topic_partition_list_t *assigned;

        if (relay->is_ready || rd_kafka_assignment(relay->consumer, &assigned) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return;
        relay->is_ready = assigned->cnt > 0;
        rd_kafka_topic_partition_list_destroy(assigned);
        if (relay->is_ready) {
                printf("ready\n");
                (void)fflush(stdout);
        }
}

static void
step(struct relay *relay)
{
        rd_kafka_message_t *message =
            rd_kafka_consumer_poll(relay->consumer, relay->n_taken > 0 ? 0 : POLL_MS);

        report_ready(relay);
        if (message != NULL) {
                if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
                        take(relay, message);
                rd_kafka_message_destroy(message);
        }
        if (relay->n_taken >= MAX_BATCH || (message == NULL && relay->n_taken > 0))
                commit(relay);
}

int
main(int argc, char **argv)
{
        struct relay relay = {NULL, NULL, NULL, NULL, 0, 0, 0};

        if (argc != 5) {
                printf("usage: relay BOOTSTRAP FROM TO ID\n\n"
                       "Read the topic FROM from its beginning as the consumer group ID, and publish each "
                       "record\n"
                       "to the topic TO, in transactions, until SIGTERM. Prints `ready` when partitions are\n"
                       "assigned, and `routed` with the total number of records after each transaction.\n");
                return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : EX_USAGE;
        }
        (void)signal(SIGTERM, on_signal);
        relay.to = argv[3];
        start(&relay, argv[1], argv[2], argv[4]);
        while (!stopping)
                step(&relay);
        if (relay.n_taken > 0)
                commit(&relay);
        rd_kafka_topic_partition_list_destroy(relay.offsets);
        (void)rd_kafka_consumer_close(relay.consumer);
        rd_kafka_destroy(relay.consumer);
        rd_kafka_destroy(relay.producer);
        return 0;
}
