#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/kafka_access.h"
#include "cli/wrap.h"

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
        if (n_known == n)
                return 0;
        return command_fail(EX_TEMPFAIL,
                            "the brokers do not know all topics yet; check with gatepost topics list");
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
                status = command_fail(EX_UNAVAILABLE, "%s: %s", needs[i].name, error.text);
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
                        status = command_fail(EX_UNAVAILABLE, "%s: %s", needs[i].name, error.text);
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

/* Print what the embedded broker has: gatepostd itself creates the topics there. Returns an exit status. */
static int
show_embedded(const struct config *config, rd_kafka_t *client)
{
        size_t n, n_missing = 0;
        struct topic_need *needs = topics_needed(config, &n);
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        struct error error;
        int result = topics_describe_partitions(client, needs, n, states, KAFKA_ACCESS_TIMEOUT_MS, &error);

        for (size_t i = 0; i < n && result == 0; i++) {
                printf("%-40s %s\n", needs[i].name, states[i].exists ? "exists, unchanged" : "missing");
                n_missing += !states[i].exists;
        }
        free(states);
        free(needs);
        if (result != 0)
                return command_fail(EX_UNAVAILABLE, "%s", error.text);
        if (n_missing == 0)
                return 0;
        return command_fail(EX_TEMPFAIL,
                            "gatepostd creates the topics of its embedded broker, when it starts "
                            "and at a reload: send it SIGHUP");
}

static struct {
        uint64_t partitions, replicas; /* 0: the default */
        const char *bootstrap;
} args;

static int
run(const struct config *config)
{
        int status = kafka_access_find(config, &args.bootstrap);
        rd_kafka_t *client = status != 0 ? NULL : kafka_access_open(config, args.bootstrap);
        struct topic_settings settings;
        struct error error;
        int result;

        if (client == NULL)
                return status != 0 ? status : EX_CONFIG;
        wrap_stdout();
        kafka_access_begin(config, args.bootstrap);
        result = topics_default_settings(client, &settings, KAFKA_ACCESS_TIMEOUT_MS, &error);
        kafka_access_end();
        if (result == 0 && config->embedded) {
                status = show_embedded(config, client);
        } else if (result != 0) {
                status = command_fail(EX_UNAVAILABLE, "%s", error.text);
        } else {
                settings.partitions = args.partitions > 0 ? (int)args.partitions : settings.partitions;
                settings.replicas = args.replicas > 0 ? (int)args.replicas : settings.replicas;
                status = create_all(config, client, &settings);
        }
        rd_kafka_destroy(client);
        return status;
}

static const struct command_option options[] = {
    {"partitions", "N", "create each topic with N partitions (default: 6)", .number = &args.partitions,
     .min = 1, .max = 10000},
    {"replication-factor", "N", "keep N replicas (default: 3 with three or more brokers, else 1)",
     .number = &args.replicas, .min = 1, .max = 100},
    KAFKA_ACCESS_BOOTSTRAP(args.bootstrap),
};

const struct command topics_create_command = {
    .name = "topics create",
    .help = "create missing topics with the right settings",
    .run = run,
    COMMAND_OPTIONS(options),
};
