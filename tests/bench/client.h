#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <librdkafka/rdkafka.h>

/* Clients of Kafka without Gatepost, for what it is held against. What fails ends the process. */

struct property {
        const char *name, *value;
};

/* Say what failed, and why, and end. */
_Noreturn void client_fail(const char *what, const char *reason);

void client_set(rd_kafka_conf_t *conf, const char *name, const char *value);

/* A configuration, the caller's, with these properties; the last has no name. */
rd_kafka_conf_t *client_conf(const struct property *properties);

/* Takes conf over. The client is the caller's; what comes for a consumer and the rest are polled in one. */
rd_kafka_t *client_open(rd_kafka_type_t type, rd_kafka_conf_t *conf);

#endif
