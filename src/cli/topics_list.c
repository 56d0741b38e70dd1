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

#define NAME_WIDTH 40

static const char *const use_names[] = {
    [TOPIC_DELIVERIES] = "deliveries", [TOPIC_QUARANTINE] = "quarantine", [TOPIC_EVENTS] = "events"};

struct topics_list {
        const struct config *config;
        struct json_writer *json; /* NULL: print text */
        int n_fatal;              /* findings that make gatepostd refuse to start */
};

static void
on_finding(const struct topic_finding *finding, void *arg)
{
        struct topics_list *list = arg;

        list->n_fatal += finding->fatal;
        if (list->json == NULL) {
                printf("    %s: %s\n", finding->fatal ? "wrong" : "differs", finding->text);
                return;
        }
        json_open_object(list->json, NULL);
        json_flag(list->json, "fatal", finding->fatal);
        json_member(list->json, "text", finding->text);
        json_close_object(list->json);
}

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

/* Check the settings, which an embedded broker does not have. */
static void
check(struct topics_list *list, const struct topic_need *need, const struct topic_state *state)
{
        if (!list->config->embedded || !state->exists)
                topics_check(list->config, need, state, on_finding, list);
}

static void
show_text(struct topics_list *list, const struct topic_need *need, const struct topic_state *state)
{
        char retention[NUMBER_TEXT_SIZE];

        if (state->exists)
                printf("%-*s %-10s %10d %8d %9s\n", NAME_WIDTH, need->name, use_names[need->use],
                       state->partitions, state->replicas, format_retention(state, retention));
        else
                printf("%-*s %-10s %10s %8s %9s\n", NAME_WIDTH, need->name, use_names[need->use], "missing",
                       "-", "-");
        check(list, need, state);
}

static void
show_json(struct topics_list *list, const struct topic_need *need, const struct topic_state *state)
{
        struct json_writer *json = list->json;

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
        check(list, need, state);
        json_close_array(json);
        json_close_object(json);
}

static void
show_all(struct topics_list *list, const struct topic_need *needs, const struct topic_state *states, size_t n)
{
        if (list->json == NULL) {
                printf("%-*s %-10s %10s %8s %9s\n", NAME_WIDTH, "TOPIC", "USE", "PARTITIONS", "REPLICAS",
                       "KEPT");
                for (size_t i = 0; i < n; i++)
                        show_text(list, &needs[i], &states[i]);
                printf("\ngatepost-consumers(7) describes their records\n");
                return;
        }
        json_open_array(list->json, NULL);
        for (size_t i = 0; i < n; i++)
                show_json(list, &needs[i], &states[i]);
        json_close_array(list->json);
        json_print(list->json);
}

static struct {
        int as_json;
        const char *bootstrap;
} args;

/* Ask for the topics. Returns 0, or -1 with the reason. */
static int
describe(rd_kafka_t *client, const struct config *config, const struct topic_need *needs, size_t n,
         struct topic_state *states, struct error *error)
{
        int result;

        result =
            (config->embedded ? topics_describe_partitions : topics_describe)(client, needs, n, states,
                                                                              KAFKA_ACCESS_TIMEOUT_MS, error);
        return result;
}

static int
run(const struct config *config)
{
        int status = kafka_access_find(config, &args.bootstrap);
        rd_kafka_t *client = status != 0 ? NULL : kafka_access_open(config, args.bootstrap);
        struct topics_list list = {config, NULL, 0};
        struct topic_need *needs;
        struct topic_state *states;
        struct error error;
        size_t n;

        if (client == NULL)
                return status != 0 ? status : EX_CONFIG;
        needs = topics_needed(config, &n);
        states = mem_alloc(n * sizeof(*states));
        if (describe(client, config, needs, n, states, &error) != 0) {
                status = command_fail(EX_UNAVAILABLE, "%s", error.text);
        } else {
                list.json = args.as_json ? json_new(1) : NULL;
                show_all(&list, needs, states, n);
                status = list.n_fatal > 0 ? EX_DATAERR : 0;
                if (config->embedded)
                        (void)command_fail(0, "the embedded broker has no settings of topics to compare");
        }
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
