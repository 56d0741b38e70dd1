#include "cli/kafka_access.h"

#include <stdio.h>
#include <sysexits.h>

#include "kafka/client.h"

const char *
kafka_access_bootstrap(const struct config *config, const char *given, int *status)
{
        *status = 0;
        if (given == NULL && config->embedded) {
                fprintf(
                    stderr,
                    "gatepost: the broker is embedded in gatepostd, which logs its address when it starts: "
                    "give it by --bootstrap ADDR\n");
                *status = EX_USAGE;
        }
        return given;
}

rd_kafka_t *
kafka_access_open(const struct config *config, const char *bootstrap)
{
        struct error error;
        rd_kafka_t *client =
            client_new(RD_KAFKA_PRODUCER, config, bootstrap, NULL, client_log_errors, NULL, &error);

        if (client == NULL)
                fprintf(stderr, "gatepost: %s\n", error.text);
        return client;
}
