#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <librdkafka/rdkafka.h>

/* Kafka clients that share no code with Gatepost, for comparison. Any error ends the process. */

struct property {
        const char *name, *value;
};

/* Print the operation and the reason, and exit. */
_Noreturn void client_fail(const char *what, const char *reason);

void client_set(rd_kafka_conf_t *conf, const char *name, const char *value);

/* Return a new configuration with these properties; the name of the last is NULL. */
rd_kafka_conf_t *client_conf(const struct property *properties);

/* Open a client, which takes ownership of conf. A consumer has one queue for messages and events. */
rd_kafka_t *client_open(rd_kafka_type_t type, rd_kafka_conf_t *conf);

#endif
