#include "cli/kafka_access.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/json_tree.h"
#include "cli/command.h"
#include "cli/daemon_status.h"
#include "kafka/client.h"
#include "kafka/client_error.h"
#include "kafka/offsets.h"
#include "kafka/outage.h"

int
kafka_access_find(const struct config *config, const char **bootstrap)
{
        static char address[64];
        const struct json_value *embedded;
        struct json_value *report;
        int status;

        outage_set_logging(0); /* the command prints why Kafka does not answer */
        if (*bootstrap != NULL && strchr(*bootstrap, '@') != NULL)
                return command_misused("--bootstrap takes HOST:PORT, without a user and a password");
        if (*bootstrap != NULL)
                return strcmp(*bootstrap, "embedded") != 0
                           ? 0
                           : command_misused(
                                 "--bootstrap takes HOST:PORT; without it, gatepostd is asked for "
                                 "the address of its embedded broker");
        if (!config->embedded)
                return 0;
        status = daemon_status_read(config->file, &report);
        if (status != 0)
                return command_fail(status, "the broker is embedded in gatepostd, which knows its address; "
                                            "pass it with --bootstrap ADDR if you know it");
        embedded = json_tree_get(report, "embeddedBroker");
        if (embedded != NULL && embedded->type == JSON_STRING && strlen(embedded->text) < sizeof(address))
                *bootstrap = strcpy(address, embedded->text);
        json_tree_free(report);
        if (*bootstrap != NULL)
                return 0;
        return command_fail(EX_UNAVAILABLE, "gatepostd at %s has no embedded broker, unlike %s; restart it",
                            config->admin->text, config->file);
}

rd_kafka_t *
kafka_access_open(const struct config *config, const char *bootstrap)
{
        struct error error;
        rd_kafka_t *client =
            client_new(RD_KAFKA_PRODUCER, config, bootstrap, NULL, client_error_log_all, NULL, &error);

        if (client == NULL)
                fprintf(stderr, "gatepost: %s\n", error.text);
        return client;
}

void
kafka_access_advise(void)
{
        command_advise("This account lacks a permission. KAFKA ACCOUNTS in gatepost-guide(7) has an account "
                       "for each command; -c takes a file with that account.");
}

int
kafka_access_fail(int is_denied, const char *reason)
{
        (void)command_fail(0, "%s", reason);
        if (is_denied)
                kafka_access_advise();
        return is_denied ? EX_NOPERM : EX_UNAVAILABLE;
}

int
kafka_access_status(enum range_result result, const struct error *error)
{
        switch (result) {
        case RANGE_DONE:
                return 0;
        case RANGE_DENIED:
        case RANGE_AWAY:
                return kafka_access_fail(result == RANGE_DENIED, error->text);
        case RANGE_OPEN_TRANSACTION:
        case RANGE_DELETED:
                return command_fail(EX_TEMPFAIL, "%s; try again", error->text);
        case RANGE_FAILED:
                break;
        }
        return command_fail(EX_OSERR, "%s", error->text);
}

int
kafka_access_ranges(const struct config *config, const char *bootstrap, const char *topic,
                    struct range **ranges, size_t *n)
{
        struct error error;
        struct offsets *offsets = offsets_new(config, bootstrap, &error);
        int status = 0;

        *ranges = NULL;
        if (offsets == NULL)
                return command_fail(EX_CONFIG, "%s", error.text);
        if (offsets_stable_ranges(offsets, topic, ranges, n, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0)
                status = kafka_access_fail(offsets_is_denied(offsets), error.text);
        offsets_free(offsets);
        return status;
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

void
kafka_access_announce(const char *topic, const struct range *ranges, size_t n)
{
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "reading %s: about %" PRIu64 " records\n", topic,
                        kafka_access_count_offsets(ranges, n));
}
