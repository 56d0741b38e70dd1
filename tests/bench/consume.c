/* The upper bound for a router's input: a consumer that discards its records. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "client.h"

static double
now_s(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Open a consumer with librdkafka's defaults, except for the NAME=VALUE arguments. */
static rd_kafka_t *
open_consumer(const char *bootstrap, char **properties)
{
        const struct property fixed[] = {
            {"bootstrap.servers", bootstrap},
            {"group.id", "gatepost-bench"},
            {"enable.auto.commit", "false"},
            {NULL, NULL},
        };
        rd_kafka_conf_t *conf = client_conf(fixed);

        for (; *properties != NULL; properties++) {
                char *value = strchr(*properties, '=');

                if (value == NULL)
                        client_fail(*properties, "not NAME=VALUE");
                *value++ = '\0';
                client_set(conf, *properties, value);
        }
        return client_open(RD_KAFKA_CONSUMER, conf);
}

static void
assign_all(rd_kafka_t *client, const char *topic)
{
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
        rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
        rd_kafka_resp_err_t err = rd_kafka_metadata(client, 0, handle, &metadata, 10000);

        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                client_fail(topic, rd_kafka_err2str(err));
        for (int p = 0; p < metadata->topics[0].partition_cnt; p++)
                rd_kafka_topic_partition_list_add(list, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
        rd_kafka_metadata_destroy(metadata);
        rd_kafka_topic_destroy(handle);
        err = rd_kafka_assign(client, list);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                client_fail(topic, rd_kafka_err2str(err));
        rd_kafka_topic_partition_list_destroy(list);
}

int
main(int argc, char **argv)
{
        rd_kafka_t *client;
        uint64_t wanted, n = 0;
        double begun;

        if (argc < 4) {
                printf("usage: consume BOOTSTRAP TOPIC RECORDS [NAME=VALUE]...\n\n"
                       "Read this number of records from the beginning of the topic, and print the seconds\n"
                       "it took from the first fetch. NAME=VALUE sets a property of librdkafka.\n");
                return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : EX_USAGE;
        }
        wanted = strtoull(argv[3], NULL, 10);
        client = open_consumer(argv[1], argv + 4);
        begun = now_s();
        assign_all(client, argv[2]);
        while (n < wanted) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 10000);

                if (message == NULL)
                        client_fail(argv[2], "no record for 10 seconds");
                n += message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
                rd_kafka_message_destroy(message);
        }
        printf("%.3f\n", now_s() - begun);
        (void)rd_kafka_consumer_close(client);
        rd_kafka_destroy(client);
        return 0;
}
