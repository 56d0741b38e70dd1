#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "cli/kafka_access.h"

/*
 * Wait until the brokers know all topics, so that a daemon started next finds them. Returns an exit status.
 */
static int
wait_for_all(rd_kafka_t *client, const struct topic_need *needs, size_t n)
{
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        struct error error;
        size_t n_known = 0;

        for (int tries = 0; n_known < n && tries < 50; tries++) {
                if (tries > 0)
                        clock_sleep_ms(100);
                n_known = 0;
                if (topics_describe(client, needs, n, states, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0)
                        break;
                for (size_t i = 0; i < n; i++)
                        n_known += states[i].exists != 0;
        }
        free(states);
        if (n_known < n)
                fprintf(stderr, "gatepost topics create: the brokers do not know all topics yet; check with "
                                "gatepost topics list\n");
        return n_known == n ? 0 : EX_TEMPFAIL;
}

/*
 * Validate all topics before creating the first. Kafka refuses names that collide with other topics, and more
 * replicas than there are brokers. Returns 0, or an exit status after printing the reasons.
 */
static int
validate_all(const struct config *config, rd_kafka_t *client, const struct topic_settings *settings,
             const struct topic_need *needs, size_t n)
{
        struct topic_settings only_check = *settings;
        int status = 0;

        only_check.only_check = 1;
        for (size_t i = 0; i < n; i++) {
                struct error error;

                if (topics_create(client, config, &needs[i], &only_check, KAFKA_ACCESS_TIMEOUT_MS, &error) >=
                    0)
                        continue;
                fprintf(stderr, "gatepost topics create: %s: %s\n", needs[i].name, error.text);
                status = EX_UNAVAILABLE;
        }
        return status;
}

/*
 * Create the topics, the others too when one fails. Returns 0, or an exit status after printing the reasons.
 */
static int
create_all(const struct config *config, rd_kafka_t *client, const struct topic_settings *settings)
{
        size_t n;
        struct topic_need *needs = topics_needed(config, &n);
        int status = validate_all(config, client, settings, needs, n), is_valid = status == 0;

        for (size_t i = 0; i < n && is_valid; i++) {
                struct error error;
                int is_new =
                    topics_create(client, config, &needs[i], settings, KAFKA_ACCESS_TIMEOUT_MS, &error);

                if (is_new < 0) {
                        fprintf(stderr, "gatepost topics create: %s: %s\n", needs[i].name, error.text);
                        status = EX_UNAVAILABLE;
                } else {
                        printf("%-40s %s\n", needs[i].name, is_new ? "created" : "exists, unchanged");
                        (void)fflush(stdout);
                }
        }
        if (status == 0)
                status = wait_for_all(client, needs, n);
        free(needs);
        return status;
}

static int
create(const struct config *config, const char *bootstrap, uint64_t partitions, uint64_t replicas)
{
        int status;
        const char *brokers = kafka_access_bootstrap(config, bootstrap, &status);
        rd_kafka_t *client = status != 0 ? NULL : kafka_access_open(config, brokers);
        struct topic_settings settings;
        struct error error;

        if (client == NULL)
                return status != 0 ? status : EX_CONFIG;
        if (topics_default_settings(client, &settings, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0) {
                fprintf(stderr, "gatepost topics create: %s\n", error.text);
                status = EX_UNAVAILABLE;
        } else {
                settings.partitions = partitions > 0 ? (int)partitions : settings.partitions;
                settings.replicas = replicas > 0 ? (int)replicas : settings.replicas;
                status = create_all(config, client, &settings);
        }
        rd_kafka_destroy(client);
        return status;
}

int
topics_create_run(const struct command_context *context, int argc, char **argv)
{
        static const struct option options[] = {{"partitions", required_argument, NULL, 'p'},
                                                {"replication-factor", required_argument, NULL, 'r'},
                                                {"bootstrap", required_argument, NULL, 'b'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        uint64_t partitions = 0, replicas = 0;
        const char *bootstrap = NULL;
        struct config *config;
        struct error error;
        int option, status;

        while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == 'p' && number_parse(optarg, 1, 10000, &partitions, &error) != 0)
                        return command_misused(context, "--partitions: %s", error.text);
                if (option == 'r' && number_parse(optarg, 1, 100, &replicas, &error) != 0)
                        return command_misused(context, "--replication-factor: %s", error.text);
                if (option == 'b')
                        bootstrap = optarg;
                if (option == '?')
                        return command_misused(context, "wrong option");
        }
        if (optind != argc)
                return command_misused(context, "takes no arguments");
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = create(config, bootstrap, partitions, replicas);
        config_free(config);
        return status;
}
