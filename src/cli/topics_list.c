#include "cli/commands.h"

#include <getopt.h>
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

static void
show_text(struct topics_list *list, const struct topic_need *need, const struct topic_state *state)
{
        char retention[NUMBER_TEXT_SIZE];

        if (state->exists)
                printf("%-40s %-10s %10d %8d %9s\n", need->name, use_names[need->use], state->partitions,
                       state->replicas, format_retention(state, retention));
        else
                printf("%-40s %-10s %10s %8s %9s\n", need->name, use_names[need->use], "missing", "-", "-");
        topics_check(list->config, need, state, on_finding, list);
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
        json_number(json, "retentionMs", state->retention_ms);
        json_open_array(json, "findings");
        topics_check(list->config, need, state, on_finding, list);
        json_close_array(json);
        json_close_object(json);
}

static void
show_all(struct topics_list *list, const struct topic_need *needs, const struct topic_state *states, size_t n)
{
        if (list->json == NULL) {
                printf("%-40s %-10s %10s %8s %9s\n", "TOPIC", "USE", "PARTITIONS", "REPLICAS", "KEPT");
                for (size_t i = 0; i < n; i++)
                        show_text(list, &needs[i], &states[i]);
                printf("\nTheir records are described in %s/asyncapi.yaml\n", PKGDATADIR);
                return;
        }
        json_open_array(list->json, NULL);
        for (size_t i = 0; i < n; i++)
                show_json(list, &needs[i], &states[i]);
        json_close_array(list->json);
        json_print(list->json);
}

static int
show(const struct config *config, const char *bootstrap, int as_json)
{
        int status;
        const char *brokers = kafka_access_bootstrap(config, bootstrap, &status);
        rd_kafka_t *client = status != 0 ? NULL : kafka_access_open(config, brokers);
        struct topics_list list = {config, NULL, 0};
        struct topic_need *needs;
        struct topic_state *states;
        struct error error;
        size_t n;

        if (client == NULL)
                return status != 0 ? status : EX_CONFIG;
        needs = topics_needed(config, &n);
        states = mem_alloc(n * sizeof(*states));
        if (topics_describe(client, needs, n, states, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0) {
                fprintf(stderr, "gatepost topics list: %s\n", error.text);
                status = EX_UNAVAILABLE;
        } else {
                list.json = as_json ? json_new(1) : NULL;
                show_all(&list, needs, states, n);
                status = list.n_fatal > 0 ? EX_DATAERR : 0;
        }
        free(states);
        free(needs);
        rd_kafka_destroy(client);
        return status;
}

int
topics_list_run(const struct command_context *context, int argc, char **argv)
{
        static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                                {"bootstrap", required_argument, NULL, 'b'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        const char *bootstrap = NULL;
        struct config *config;
        int option, as_json = 0, status;

        while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == 'j')
                        as_json = 1;
                else if (option == 'b')
                        bootstrap = optarg;
                else
                        return command_misused(context, "wrong option");
        }
        if (optind != argc)
                return command_misused(context, "takes no arguments");
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = show(config, bootstrap, as_json);
        config_free(config);
        return status;
}
