#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

void
client_fail(const char *what, const char *reason)
{
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, reason);
        exit(EX_UNAVAILABLE);
}

void
client_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
        char reason[256];

        if (rd_kafka_conf_set(conf, name, value, reason, sizeof(reason)) != RD_KAFKA_CONF_OK)
                client_fail(name, reason);
}

rd_kafka_conf_t *
client_conf(const struct property *properties)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();

        for (; properties->name != NULL; properties++)
                client_set(conf, properties->name, properties->value);
        return conf;
}

rd_kafka_t *
client_open(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
        char reason[256];
        rd_kafka_t *client = rd_kafka_new(type, conf, reason, sizeof(reason));

        if (client == NULL)
                client_fail("client", reason);
        if (type == RD_KAFKA_CONSUMER)
                (void)rd_kafka_poll_set_consumer(client);
        return client;
}
