#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/kafka_access.h"
#include "kafka/topics_check.h"

static struct {
        uint64_t partitions, replicas; /* 0: the default */
        unsigned without;              /* as in struct topic_settings */
        const char *bootstrap;
} args;

static void
on_difference(const struct topic_finding *finding, void *arg)
{
        int *status = arg;

        if (finding->fatal)
                *status = EX_DATAERR;
        printf("%s\n    %s: %s\n", finding->topic, finding->fatal ? "wrong" : "differs", finding->text);
}

/*
 * Wait until the brokers know all topics, so that a daemon started next finds them. If settings were left
 * out, print what differs without them. Returns an exit status.
 */
static int
wait_for_all(const struct config *config, rd_kafka_t *client, const struct topic_need *needs, size_t n)
{
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        struct error error;
        size_t n_known = 0;
        int status = 0;

        for (int tries = 0; n_known < n && tries < 50; tries++) {
                if (tries > 0)
                        clock_sleep_ms(100);
                n_known = 0;
                if (topics_describe(client, needs, n, states, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0)
                        break;
                for (size_t i = 0; i < n; i++)
                        n_known += states[i].exists != 0;
        }
        if (n_known < n)
                status =
                    command_fail(EX_TEMPFAIL, "the brokers do not know all topics yet; check with gatepost "
                                              "topics list");
        for (size_t i = 0; i < n && n_known == n && args.without != 0; i++)
                topics_check(config, &needs[i], &states[i], on_difference, &status);
        free(states);
        return status;
}

static void
on_unfit_default(const struct topic_finding *finding, void *arg)
{
        const char *remedy = strstr(finding->text, "; fix it: ");
        int len = remedy == NULL ? (int)strlen(finding->text) : (int)(remedy - finding->text), *status = arg;

        if (finding->fatal && *status == 0)
                *status =
                    command_fail(EX_DATAERR,
                                 "%s: with the brokers' default, %.*s; do not leave out this setting, or "
                                 "change the brokers' default",
                                 finding->topic, len, finding->text);
}

/* Set the settings of a state to what a new topic gets. */
static void
predict(const struct config *config, const struct topic_need *need, const struct topic_settings *settings,
        struct topic_state *state)
{
        state->exists = state->settings_known = 1;
        state->partitions = settings->partitions;
        state->replicas = settings->replicas;
        for (enum topic_setting s = 0; s < TOPIC_N_SETTINGS; s++) {
                char text[NUMBER_TEXT_SIZE];
                const char *value = topic_settings_value(config, need->use, settings->replicas, s, text);

                if (value != NULL && !(settings->without & 1u << s))
                        topic_settings_read(state, s, value);
        }
}

/* Refuse to leave out what a topic requires if the default is not known. Returns 0, or an exit status. */
static int
check_known(const struct topic_need *need, unsigned left_out, unsigned known, const char *reason)
{
        for (enum topic_setting s = 0; s < TOPIC_N_SETTINGS; s++) {
                if (left_out & ~known & 1u << s && topic_settings_is_required(need->use, s))
                        return command_fail(
                            EX_UNAVAILABLE,
                            "%s: do not leave out %s: the guarantee needs it, and the brokers' "
                            "default cannot be read: %s",
                            need->name, topic_settings_name(s), reason);
        }
        return 0;
}

/*
 * Check whether the topics that are missing can do without the settings to be left out: gatepostd does not
 * start with a topic that lacks what the guarantee needs. Returns 0, or an exit status after printing the
 * reason.
 */
static int
check_without(const struct config *config, rd_kafka_t *client, const struct topic_settings *settings,
              const struct topic_need *needs, size_t n)
{
        struct topic_state *states = mem_alloc(n * sizeof(*states)), defaults = {0};
        struct error error = {"no broker has it"};
        unsigned known = 0;
        int status = 0;

        if (topics_describe_partitions(client, needs, n, states, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0)
                status = command_fail(EX_UNAVAILABLE, "%s", error.text);
        else if (topic_settings_read_defaults(client, &defaults, &known, KAFKA_ACCESS_TIMEOUT_MS, &error) !=
                 0)
                known = 0;
        for (size_t i = 0; i < n && status == 0; i++) {
                struct topic_state state = defaults;

                if (states[i].exists)
                        continue;
                status = check_known(&needs[i], settings->without, known, error.text);
                predict(config, &needs[i], settings, &state);
                if (status == 0)
                        topics_check(config, &needs[i], &state, on_unfit_default, &status);
        }
        free(states);
        return status;
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
                enum topics_created result =
                    topics_create(client, config, &needs[i], &only_check, KAFKA_ACCESS_TIMEOUT_MS, &error);

                if (result == TOPICS_DENIED || result == TOPICS_FAILED)
                        status = command_fail(result == TOPICS_DENIED ? EX_NOPERM : EX_UNAVAILABLE, "%s: %s",
                                              needs[i].name, error.text);
        }
        if (status == EX_NOPERM)
                kafka_access_advise();
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
        int status = settings->without == 0 ? 0 : check_without(config, client, settings, needs, n);
        int is_valid;

        if (status == 0)
                status = validate_all(config, client, settings, needs, n);
        is_valid = status == 0;
        for (size_t i = 0; i < n && is_valid; i++) {
                struct error error;
                enum topics_created result =
                    topics_create(client, config, &needs[i], settings, KAFKA_ACCESS_TIMEOUT_MS, &error);

                if (result == TOPICS_DENIED || result == TOPICS_FAILED) {
                        status = command_fail(EX_UNAVAILABLE, "%s: %s", needs[i].name, error.text);
                } else {
                        printf("%-40s %s\n", needs[i].name,
                               result == TOPICS_CREATED ? "created" : "exists, unchanged");
                        (void)fflush(stdout);
                }
        }
        if (status == 0)
                status = wait_for_all(config, client, needs, n);
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

static int
parse_setting(const char *text, struct error *error)
{
        enum topic_setting setting = topic_settings_find(text);
        const char *closest = topic_settings_suggest(text);
        char all[300] = "";

        args.without |= setting == TOPIC_N_SETTINGS ? 0 : 1u << setting;
        if (setting < TOPIC_N_SETTINGS)
                return 0;
        if (closest != NULL)
                return error_set(error, "unknown setting '%.64s'; did you mean %s?", text, closest);
        for (enum topic_setting s = 0; s < TOPIC_N_SETTINGS; s++) {
                size_t len = strlen(all);

                (void)snprintf(all + len, sizeof(all) - len, "%s%s", len == 0 ? "" : ", ",
                               topic_settings_name(s));
        }
        return error_set(error, "unknown setting '%.64s'; those of new topics are %s", text, all);
}

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
        result = topics_default_settings(client, &settings, KAFKA_ACCESS_TIMEOUT_MS, &error);
        if (result == 0 && config->embedded) {
                status = show_embedded(config, client);
        } else if (result != 0) {
                status = command_fail(EX_UNAVAILABLE, "%s", error.text);
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
