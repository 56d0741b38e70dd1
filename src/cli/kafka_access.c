#include "cli/kafka_access.h"

#include <stdio.h>
#include <sysexits.h>

#include "cli/command.h"
#include "kafka/client.h"

int
kafka_access_check(const struct config *config, const char *bootstrap)
{
        if (bootstrap != NULL || !config->embedded)
                return 0;
        return command_fail(EX_USAGE, "the broker is embedded in gatepostd, which logs its address when it "
                                      "starts: pass it with --bootstrap ADDR");
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

int
kafka_access_status(enum range_result result, const struct error *error)
{
        switch (result) {
        case RANGE_DONE:
                return 0;
        case RANGE_DENIED:
                return command_fail(EX_NOPERM, "%s", error->text);
        case RANGE_AWAY:
                return command_fail(EX_UNAVAILABLE, "%s", error->text);
        case RANGE_OPEN_TRANSACTION:
        case RANGE_DELETED:
                return command_fail(EX_TEMPFAIL, "%s; try again", error->text);
        case RANGE_FAILED:
                break;
        }
        return command_fail(EX_OSERR, "%s", error->text);
}

uint64_t
kafka_access_count_offsets(const struct range *ranges, size_t n)
{
        uint64_t count = 0;

        for (size_t i = 0; i < n; i++) {
                if (ranges[i].to > ranges[i].from)
                        count += (uint64_t)(ranges[i].to - ranges[i].from);
        }
        return count;
}
