#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/number.h"
#include "cli/kafka_access.h"
#include "kafka/topics_check.h"

static const char *const use_names[] = {
    [TOPIC_DELIVERIES] = "deliveries", [TOPIC_QUARANTINE] = "quarantine", [TOPIC_EVENTS] = "events"};

static char *
format_retention(const struct topic_state *state, char text[NUMBER_TEXT_SIZE])
{
        if (!state->exists || !state->settings_known)
                (void)snprintf(text, NUMBER_TEXT_SIZE, "-");
        else if (state->retention_ms < 0)
                (void)snprintf(text, NUMBER_TEXT_SIZE, "unlimited");
        else
                (void)number_format_duration((uint64_t)state->retention_ms, text);
        return text;
}

static void
print_row(const struct topic_need *need, const struct topic_state *state)
{
        char retention[NUMBER_TEXT_SIZE];

        if (state->exists)
                printf("%-40s %-10s %10d %8d %9s\n", need->name, use_names[need->use], state->partitions,
                       state->replicas, format_retention(state, retention));
        else
                printf("%-40s %-10s %10s %8s %9s\n", need->name, use_names[need->use], "missing", "-", "-");
}

static void
print_text(const struct topic_need *needs, const struct topic_state *states, const struct findings *findings,
           size_t n)
{
        printf("%-40s %-10s %10s %8s %9s\n", "TOPIC", "USE", "PARTITIONS", "REPLICAS", "KEPT");
        for (size_t i = 0; i < n; i++)
                print_row(&needs[i], &states[i]);
        putchar('\n');
        for (size_t i = 0; i < n; i++) {
                for (size_t f = 0; f < findings[i].n; f++)
                        finding_print(stdout, &findings[i].items[f]);
        }
        printf("gatepost-consumers(7) describes their records\n");
}

static void
put_topic(struct json_writer *json, const struct topic_need *need, const struct topic_state *state,
          const struct findings *findings)
{
        json_open_object(json, NULL);
        json_member(json, "topic", need->name);
        json_member(json, "use", use_names[need->use]);
        json_flag(json, "exists", state->exists);
        json_number(json, "partitions", state->partitions);
        json_number(json, "replicas", state->replicas);
        if (state->exists && !state->settings_known)
                json_null(json, "retentionMs");
        else
                json_number(json, "retentionMs", state->retention_ms);
        json_open_array(json, "findings");
        for (size_t f = 0; f < findings->n; f++)
                finding_put_json(json, &findings->items[f]);
        json_close_array(json);
        json_close_object(json);
}

static void
print_json(const struct topic_need *needs, const struct topic_state *states, const struct findings *findings,
           size_t n)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < n; i++)
                put_topic(json, &needs[i], &states[i], &findings[i]);
        json_close_array(json);
        json_print(json);
}

static struct {
        int as_json;
        const char *bootstrap;
} args;

/* Check and print the topics. Return an exit status. An embedded broker has no settings to check. */
static int
show(const struct config *config, const struct topic_need *needs, const struct topic_state *states, size_t n)
{
        struct findings *findings = mem_alloc(n * sizeof(*findings));
        size_t n_errors = 0;

        for (size_t i = 0; i < n; i++) {
                if (!config->embedded || !states[i].exists)
                        topics_check(config, &needs[i], &states[i], 1, &findings[i], NULL);
                n_errors += findings_count(&findings[i], FINDING_ERROR);
        }
        (args.as_json ? print_json : print_text)(needs, states, findings, n);
        for (size_t i = 0; i < n; i++)
                findings_clear(&findings[i]);
        free(findings);
        return n_errors > 0 ? EX_DATAERR : 0;
}

static int
run(const struct config *config)
{
        int status = kafka_access_find(config, &args.bootstrap), result;
        rd_kafka_t *client = status != 0 ? NULL : kafka_access_open(config, args.bootstrap);
        struct topic_need *needs;
        struct topic_state *states;
        struct error error;
        size_t n;

        if (client == NULL)
                return status != 0 ? status : EX_CONFIG;
        needs = topics_needed(config, &n);
        states = mem_alloc(n * sizeof(*states));
        result =
            (config->embedded ? topics_describe_partitions
                              : topics_describe)(client, needs, n, states, KAFKA_ACCESS_TIMEOUT_MS, &error);
        status =
            result == 0 ? show(config, needs, states, n) : command_fail(EX_UNAVAILABLE, "%s", error.text);
        free(states);
        free(needs);
        rd_kafka_destroy(client);
        return status;
}

static const struct command_option options[] = {
    {"json", NULL, "print JSON", .flag = &args.as_json},
    KAFKA_ACCESS_BOOTSTRAP(args.bootstrap),
};

const struct command topics_list_command = {
    .name = "topics list",
    .help = "list the topics and their misconfigurations",
    .run = run,
    COMMAND_OPTIONS(options),
};
