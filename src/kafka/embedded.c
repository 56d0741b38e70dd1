#include "kafka/embedded.h"

#include <stdlib.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "kafka/client.h"
#include "kafka/topics.h"

struct embedded {
        rd_kafka_t *host; /* a client that only holds the cluster */
        rd_kafka_mock_cluster_t *cluster;
};

int
embedded_make_topics(struct embedded *embedded, const struct config *config, struct error *error)
{
        size_t n;
        struct topic_need *needs = topics_needed(config, &n);
        rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;

        for (size_t i = 0; i < n && err == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
                err = rd_kafka_mock_topic_create(embedded->cluster, needs[i].name, 1, 1);
                if (err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
                        err = RD_KAFKA_RESP_ERR_NO_ERROR;
                if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                        (void)error_set(error, "topic %s: %s", needs[i].name, rd_kafka_err2str(err));
        }
        free(needs);
        return err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : -1;
}

struct embedded *
embedded_new(const struct config *config, struct error *error)
{
        struct embedded *embedded = calloc(1, sizeof(*embedded));

        if (embedded == NULL) {
                (void)error_set(error, "out of memory");
                return NULL;
        }
        embedded->host = client_new(RD_KAFKA_PRODUCER, config, NULL, NULL, NULL, NULL, error);
        if (embedded->host != NULL)
                embedded->cluster = rd_kafka_mock_cluster_new(embedded->host, 1);
        if (embedded->host != NULL && embedded->cluster == NULL)
                (void)error_set(error, "cannot start librdkafka's mock cluster");
        if (embedded->cluster == NULL || embedded_make_topics(embedded, config, error) != 0) {
                embedded_free(embedded);
                return NULL;
        }
        return embedded;
}

void
embedded_free(struct embedded *embedded)
{
        if (embedded == NULL)
                return;
        if (embedded->cluster != NULL)
                rd_kafka_mock_cluster_destroy(embedded->cluster);
        if (embedded->host != NULL)
                rd_kafka_destroy(embedded->host);
        free(embedded);
}

const char *
embedded_bootstrap(const struct embedded *embedded)
{
        return rd_kafka_mock_cluster_bootstraps(embedded->cluster);
}
