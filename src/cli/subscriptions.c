#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/subscription_ensure.h"
#include "config/secrets.h"

#define MAX_TIMEOUT_MS UINT64_C(600000)

/* Warn about a kind that the service does not document; it may accept it nevertheless. */
static void
check_kind(const struct topic_table *documented, const char *kind)
{
        const char *names[32], *closest;
        size_t n = topic_table_size(documented);

        for (size_t i = 0; i < n && i < ARRAY_LEN(names); i++) {
                names[i] = topic_table_rule(documented, i)->pattern;
                if (strcmp(names[i], kind) == 0)
                        return;
        }
        if (topic_table_find(documented, kind, strlen(kind)) != NULL)
                return;
        closest = text_closest(kind, names, n < ARRAY_LEN(names) ? n : ARRAY_LEN(names));
        fprintf(stderr, "gatepost: the service documents no events '%s'%s%s%s\n", kind,
                closest == NULL ? "" : "; did you mean ", closest == NULL ? "" : closest,
                closest == NULL ? "" : "?");
}

static int
has_event(const struct subscription_args *args, const char *kind)
{
        for (size_t i = 0; i < args->n_events; i++) {
                if (strcmp(args->events[i], kind) == 0)
                        return 1;
        }
        return 0;
}

/* Read a list of kinds, or `*` alone. Returns 0, or -1 with the reason. */
static int
parse_events(const char *text, struct subscription_args *args, struct error *error)
{
        struct topic_table *documented = topic_table_new();
        char *list = mem_strdup(text), *rest = list, *kind;
        int result = 0;

        topic_table_add_defaults(documented, "x");
        while (result == 0 && (kind = strsep(&rest, ",")) != NULL) {
                size_t len;

                kind += strspn(kind, " ");
                len = strcspn(kind, " ");
                if (len == 0 || kind[len + strspn(kind + len, " ")] != '\0') {
                        result = error_set(error, "takes kinds, separated by commas, or '*' for all");
                        continue;
                }
                kind[len] = '\0';
                if (has_event(args, kind))
                        continue;
                if (strcmp(kind, "*") != 0)
                        check_kind(documented, kind);
                args->events = mem_resize(args->events, args->n_events + 1, sizeof(*args->events));
                args->events[args->n_events++] = mem_strdup(kind);
        }
        if (result == 0 && args->n_events > 1 && has_event(args, "*"))
                result = error_set(error, "'*' means every event and cannot be combined");
        free(list);
        topic_table_free(documented);
        return result;
}

static int
take_option(const struct command_context *context, int option, struct subscription_args *args)
{
        struct error error;

        if (option == 'u')
                args->url = optarg;
        if (option == 's')
                args->secret_file = optarg;
        if (option == 'e' && args->events != NULL)
                return command_misused(context, "--events is repeated; give one list");
        if (option == 'e' && parse_events(optarg, args, &error) != 0)
                return command_misused(context, "--events: %s", error.text);
        if (option == 't' && number_parse_duration(optarg, 1, MAX_TIMEOUT_MS, &args->timeout_ms, &error) != 0)
                return command_misused(context, "--timeout: %s", error.text);
        args->dry_run |= option == 'd';
        args->rotate |= option == 'r';
        args->as_json |= option == 'j';
        return -1;
}

static int
check_complete(const struct command_context *context, int argc, char **argv, const char *takes,
               struct subscription_args *args)
{
        if (strchr(takes, 'u') != NULL &&
            (args->url == NULL || args->events == NULL || args->secret_file == NULL))
                return command_misused(context, "needs --url, --events and --secret-file");
        if (strchr(takes, 'i') == NULL)
                return optind == argc ? -1 : command_misused(context, "takes no arguments but options");
        if (argc - optind != 1 || argv[optind][0] == '\0')
                return command_misused(context, "needs an ID, as gatepost subscriptions list shows it");
        args->id = argv[optind];
        return -1;
}

/*
 * Read the arguments. takes has the initials of the command's options: url, events, secret-file, dry-run,
 * rotate, json, timeout; and `i` for an ID. Returns -1, or an exit status if there is nothing left to do;
 * call clear_args() in either case.
 */
static int
parse(const struct command_context *context, int argc, char **argv, const char *takes,
      struct subscription_args *args)
{
        static const struct option options[] = {{"url", required_argument, NULL, 'u'},
                                                {"events", required_argument, NULL, 'e'},
                                                {"secret-file", required_argument, NULL, 's'},
                                                {"dry-run", no_argument, NULL, 'd'},
                                                {"rotate", no_argument, NULL, 'r'},
                                                {"json", no_argument, NULL, 'j'},
                                                {"timeout", required_argument, NULL, 't'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        int option;

        *args = (struct subscription_args){.timeout_ms = API_CLIENT_TIMEOUT_MS};
        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                int status;

                if (option == 'h')
                        return command_help(context);
                if (option == '?' || strchr(takes, option) == NULL)
                        return command_misused(context, "wrong option");
                status = take_option(context, option, args);
                if (status >= 0)
                        return status;
        }
        return check_complete(context, argc, argv, takes, args);
}

static void
clear_args(struct subscription_args *args)
{
        for (size_t i = 0; i < args->n_events; i++)
                free(args->events[i]);
        free(args->events);
}

typedef int action(struct api_client *client, const struct config *config, const char *command,
                   const struct subscription_args *args);

static int
run(const struct command_context *context, int argc, char **argv, const char *takes, action *act)
{
        struct subscription_args args;
        int status = parse(context, argc, argv, takes, &args);
        struct config *config = NULL;
        struct api_client *client = NULL;

        if (status < 0) {
                config = config_load(context->file);
                status = EX_CONFIG;
        }
        if (config != NULL)
                client = api_client_open(config, args.timeout_ms, &status);
        if (client != NULL)
                status = act(client, config, context->command->name, &args);
        api_client_close(client);
        config_free(config);
        clear_args(&args);
        return status;
}

static void
print_list_json(const struct subscription_views *views)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < views->n; i++) {
                json_open_object(json, NULL);
                subscription_put_members(json, &views->items[i]);
                json_close_object(json);
        }
        json_close_array(json);
        json_print(json);
}

static void
print_list(const struct subscription_views *views)
{
        if (views->n > 0)
                printf("%-36s %-50s %s\n", "ID", "URL", "EVENTS");
        for (size_t i = 0; i < views->n; i++) {
                const struct subscription_view *view = &views->items[i];

                text_print_column(view->id, strlen(view->id), 36);
                text_print_column(view->url, strlen(view->url), 50);
                subscription_print_events(view);
                putchar('\n');
        }
}

static int
list(struct api_client *client, const struct config *config, const char *command,
     const struct subscription_args *args)
{
        struct subscription_views views;
        int status = subscription_list(client, command, &views);

        (void)config;
        if (status == 0)
                (args->as_json ? print_list_json : print_list)(&views);
        subscription_views_clear(&views);
        return status;
}

/* Print the new webhook; its ID only if the answer has it, which the service does not document. */
static void
print_added(const struct api_client_answer *answer, const struct subscription_args *args)
{
        struct subscription_views views;
        struct subscription_view view = {.url = (char *)(uintptr_t)args->url,
                                         .events = args->events,
                                         .n_events = args->n_events};

        service_answer_one(answer->body, answer->len, &views);
        if (views.n == 1) {
                view.id = views.items[0].id;
                view.created = views.items[0].created;
        }
        if (args->as_json) {
                struct json_writer *json = json_new(1);

                json_open_object(json, NULL);
                subscription_put_members(json, &view);
                json_close_object(json);
                json_print(json);
        } else if (view.id != NULL) {
                subscription_print(&view);
        }
        if (view.id == NULL)
                fprintf(stderr, "gatepost subscriptions add: registered, but the service does not say under "
                                "which ID; see gatepost subscriptions list\n");
        subscription_views_clear(&views);
}

/* Register a webhook, without repetition: a service that failed may have registered it. */
static int
add(struct api_client *client, const struct config *config, const char *command,
    const struct subscription_args *args)
{
        struct api_client_answer answer = {0};
        size_t len = 0;
        int status;
        char *payload = subscription_payload(args, config, &len, &status);

        if (payload == NULL)
                return status;
        api_client_call(client, "POST", "/webhooks", payload, len, &answer);
        secrets_free(payload, len);
        if (api_client_succeeded(&answer)) {
                print_added(&answer, args);
        } else {
                status = api_client_report(command, &answer);
                if (api_client_may_recover(&answer))
                        fprintf(stderr, "    It may have been registered: see gatepost subscriptions list, "
                                        "or use ensure, which checks\n");
        }
        api_client_answer_clear(&answer);
        return status;
}

static int
remove_one(struct api_client *client, const struct config *config, const char *command,
           const struct subscription_args *args)
{
        int was_there, status = subscription_remove(client, command, args->id, &was_there);

        (void)config;
        if (status != 0)
                return status;
        if (!was_there) {
                fprintf(stderr,
                        "gatepost %s: the service has no subscription %s; see gatepost subscriptions list\n",
                        command, args->id);
                return EX_NOINPUT;
        }
        if (args->as_json) {
                struct json_writer *json = json_new(1);

                json_open_object(json, NULL);
                json_member(json, "removed", args->id);
                json_close_object(json);
                json_print(json);
        } else {
                printf("removed %s\n", args->id);
        }
        return 0;
}

static void
print_ensured(const struct subscription_ensure *state)
{
        const struct subscription_args *args = state->args;

        if (state->kept != NULL) {
                printf("%s ", state->was_updated       ? "updated"
                              : state->was_added       ? "added"
                              : state->useless != NULL ? "stays:"
                                                       : "is right:");
                subscription_print(state->kept);
        } else if (args->dry_run) {
                struct subscription_view wanted = {.id = "a new one:",
                                                   .url = (char *)(uintptr_t)args->url,
                                                   .events = args->events,
                                                   .n_events = args->n_events};

                printf("would add ");
                subscription_print(&wanted);
        }
        for (size_t i = 0; i < (args->dry_run ? state->n_old : state->n_removed); i++) {
                printf("%s ", args->dry_run ? "would remove" : "removed");
                subscription_print(state->old[i]);
        }
}

static void
print_ensured_json(const struct subscription_ensure *state)
{
        const struct subscription_args *args = state->args;
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        json_member(json, "id", state->kept == NULL ? NULL : state->kept->id);
        json_flag(json, "added",
                  args->dry_run ? state->kept == NULL : state->was_added && !state->was_updated);
        json_flag(json, "updated", state->was_updated);
        json_open_array(json, "removed");
        for (size_t i = 0; i < (args->dry_run ? state->n_old : state->n_removed); i++)
                json_member(json, NULL, state->old[i]->id);
        json_close_array(json);
        json_flag(json, "dryRun", args->dry_run);
        json_close_object(json);
        json_print(json);
}

static int
ensure(struct api_client *client, const struct config *config, const char *command,
       const struct subscription_args *args)
{
        struct subscription_ensure state = {.client = client, .command = command, .args = args};
        size_t len = 0;
        int status;
        char *payload = subscription_payload(args, config, &len, &status);

        if (payload == NULL)
                return status;
        status = subscription_ensure(&state, payload, len);
        secrets_free(payload, len);
        if (status == 0 || state.was_added || state.n_removed > 0)
                (args->as_json ? print_ensured_json : print_ensured)(&state);
        subscription_ensure_clear(&state);
        return status;
}

int
subscriptions_list_run(const struct command_context *context, int argc, char **argv)
{
        return run(context, argc, argv, "jt", list);
}

int
subscriptions_add_run(const struct command_context *context, int argc, char **argv)
{
        return run(context, argc, argv, "uesjt", add);
}

int
subscriptions_remove_run(const struct command_context *context, int argc, char **argv)
{
        return run(context, argc, argv, "ijt", remove_one);
}

int
subscriptions_ensure_run(const struct command_context *context, int argc, char **argv)
{
        return run(context, argc, argv, "uesdrjt", ensure);
}
