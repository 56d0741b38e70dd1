#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/kafka_access.h"
#include "kafka/topics_check.h"

#define LOOKS 50
#define PAUSE_MS 100

static struct {
        uint64_t partitions, replicas; /* 0: the default */
        unsigned without;              /* as in struct topic_settings */
        const char *bootstrap;
} args;

/* Ask until the brokers know all topics, so that a daemon that is started next finds them. */
static int
wait_for_all(rd_kafka_t *client, const struct topic_need *needs, size_t n, struct topic_state *states)
{
        struct error error;
        size_t n_known = 0;

        for (int looks = 0; looks < LOOKS && n_known < n; looks++) {
                if (looks > 0)
                        clock_sleep_ms(PAUSE_MS);
                if (topics_describe(client, needs, n, states, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0)
                        return command_fail(EX_UNAVAILABLE, "%s", error.text);
                n_known = 0;
                for (size_t i = 0; i < n; i++)
                        n_known += states[i].exists != 0;
        }
        if (n_known == n)
                return 0;
        return command_fail(EX_TEMPFAIL, "the brokers do not know all topics yet; check with gatepost topics "
                                         "list");
}

/* Print what is wrong without the settings that were left out. Return an exit status. */
static int
check_all(const struct config *config, const struct topic_need *needs, size_t n,
          const struct topic_state *states)
{
        struct findings findings = {0};
        int status;

        for (size_t i = 0; i < n; i++)
                topics_check(config, &needs[i], &states[i], 1, &findings, NULL);
        for (size_t i = 0; i < findings.n; i++)
                finding_print(stdout, &findings.items[i]);
        status = findings_count(&findings, FINDING_ERROR) > 0 ? EX_DATAERR : 0;
        findings_clear(&findings);
        return status;
}

/* Create a topic, and print the result. Return an exit status. */
static int
create_one(const struct config *config, rd_kafka_t *client, const struct topic_settings *settings,
           const struct topic_need *need)
{
        struct error error;
        enum topics_created result =
            topics_create(client, config, need, settings, KAFKA_ACCESS_TIMEOUT_MS, &error);

        switch (result) {
        case TOPICS_CREATED:
        case TOPICS_EXISTS:
                printf("%-40s %s\n", need->name, result == TOPICS_CREATED ? "created" : "exists, unchanged");
                (void)fflush(stdout);
                return 0;
        case TOPICS_DENIED:
                return command_fail(EX_NOPERM, "%s: %s", need->name, error.text);
        case TOPICS_FAILED:
                break;
        }
        return command_fail(EX_UNAVAILABLE, "%s: %s", need->name, error.text);
}

/* Create the topics, the others too when one fails. Return the exit status of the first failure, or 0. */
static int
create_all(const struct config *config, rd_kafka_t *client, const struct topic_settings *settings)
{
        size_t n;
        struct topic_need *needs = topics_needed(config, &n);
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        int status = 0;

        for (size_t i = 0; i < n; i++) {
                int failure = create_one(config, client, settings, &needs[i]);

                status = status == 0 ? failure : status;
        }
        if (status == EX_NOPERM)
                kafka_access_advise();
        if (status == 0)
                status = wait_for_all(client, needs, n, states);
        if (status == 0 && settings->without != 0)
                status = check_all(config, needs, n, states);
        free(states);
        free(needs);
        return status;
}

static int
parse_setting(const char *text, struct error *error)
{
        enum topic_setting setting = topic_settings_find(text);

        if (setting == TOPIC_N_SETTINGS)
                return error_set(error, "unknown setting '%.64s'; gatepost(1) names those of new topics",
                                 text);
        args.without |= 1u << setting;
        return 0;
}

static int
run(const struct config *config)
{
        int status = kafka_access_find(config, &args.bootstrap);
        rd_kafka_t *client = status != 0 ? NULL : kafka_access_open(config, args.bootstrap);
        struct topic_settings settings;
        struct error error;

        if (client == NULL)
                return status != 0 ? status : EX_CONFIG;
        if (topics_default_settings(client, &settings, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0) {
                status = command_fail(EX_UNAVAILABLE, "%s", error.text);
        } else if (config->embedded) {
                printf(
                    "gatepostd creates the topics of its embedded broker when it starts and at a reload\n");
        } else {
                settings.partitions = args.partitions > 0 ? (int)args.partitions : settings.partitions;
                settings.replicas = args.replicas > 0 ? (int)args.replicas : settings.replicas;
                settings.without = args.without;
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
    {"without", "SETTING", "leave this setting to the brokers' default (repeatable)", .parse = parse_setting},
    KAFKA_ACCESS_BOOTSTRAP(args.bootstrap),
};

const struct command topics_create_command = {
    .name = "topics create",
    .help = "create missing topics with the right settings",
    .run = run,
    COMMAND_OPTIONS(options),
};
