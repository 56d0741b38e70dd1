#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/kafka_access.h"
#include "config/config.h"
#include "http/tls.h"
#include "kafka/clients_check.h"
#include "kafka/topics_check.h"

struct findings {
        int routes;
        int n_fatal;
};

static void
on_finding(const struct topic_finding *finding, void *arg)
{
        struct findings *findings = arg;

        if (!findings->routes && (finding->routing_only || !finding->fatal))
                return; /* for routers, whose account can see more */
        fprintf(stderr, "%s: topic %s: %s\n", finding->fatal ? "error" : "warning", finding->topic,
                finding->text);
        findings->n_fatal += finding->fatal;
}

static int
check_online(const struct config *config)
{
        size_t n;
        struct topic_need *needs = topics_needed(config, &n);
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        rd_kafka_t *client = kafka_access_open(config, NULL);
        struct error error;
        struct findings findings = {(config->roles & CONFIG_ROUTER) != 0, 0};
        int status = EX_CONFIG;

        if (!findings.routes)
                n = 1; /* a receiver uses `deliveries` only, the first one */
        if (client != NULL &&
            topics_describe(client, needs, n, states, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0) {
                fprintf(stderr, "gatepost: %s\n", error.text);
                status = EX_UNAVAILABLE;
        } else if (client != NULL) {
                for (size_t i = 0; i < n; i++)
                        topics_check(config, &needs[i], &states[i], on_finding, &findings);
                status = findings.n_fatal > 0 ? EX_CONFIG : 0;
        }
        if (client != NULL)
                rd_kafka_destroy(client);
        free(states);
        free(needs);
        return status;
}

static void
print_ok(const struct config *config, int online)
{
        int64_t days;

        printf("%s: ok, %zu source%s, %zu event topics", config->file, config->n_sources,
               config->n_sources == 1 ? "" : "s", topic_table_size(config->topics));
        if (config->certificate != NULL) {
                days = certificate_days_left(config->certificate, clock_now_ms() / 1000);
                printf(", certificate valid for %d day%s", (int)days, days == 1 ? "" : "s");
        }
        printf("%s\n", online ? ", Kafka ok" : "");
}

static int is_online, is_strict;
static size_t n_warnings;

static int
check(const struct config *config)
{
        int status;

        if (tls_check_strength(config) != 0 || clients_check(config) != 0 || tls_check_dates(config) != 0)
                return EX_CONFIG;
        if (is_online && config->embedded) {
                (void)command_fail(
                    0, "--online has no effect: gatepostd creates the topics of its embedded broker itself");
                is_online = 0;
        }
        status = is_online ? check_online(config) : 0;
        if (status == 0 && is_strict && n_warnings > 0)
                return EX_CONFIG;
        if (status == 0)
                print_ok(config, is_online);
        return status;
}

static void
report(const char *file, const struct problem *problem)
{
        n_warnings += problem->level == PROBLEM_WARNING;
        problems_print(file, problem);
}

static int
run(const char *file)
{
        struct config *config = config_load_reporting(file, report);
        int status = config == NULL ? EX_CONFIG : check(config);

        config_free(config);
        return status;
}

static const struct command_option options[] = {
    {"online", NULL, "check the topics in Kafka, too", .flag = &is_online},
    {"strict", NULL, "fail on warnings, too", .flag = &is_strict},
};

const struct command check_command = {
    .name = "check",
    .help = "check the configuration",
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
