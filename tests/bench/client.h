#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <librdkafka/rdkafka.h>

/* Clients of Kafka without Gatepost, for what it is held against. What fails ends the process. */

struct property {
        const char *name, *value;
};

/* Say what failed, and why, and end. */
_Noreturn void fail(const char *what, const char *reason);

void set_property(rd_kafka_conf_t *conf, const char *name, const char *value);

/* What the last of the properties, which has no name, ends. */
rd_kafka_conf_t *new_conf(const struct property *properties);

/* Takes conf over. */
rd_kafka_t *open_client(rd_kafka_type_t type, rd_kafka_conf_t *conf);

#endif
