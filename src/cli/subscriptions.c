#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/http_client.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/subscription_ensure.h"
#include "config/secrets.h"

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

static struct subscription_args args = {.timeout_ms = HTTP_CLIENT_TIMEOUT_MS};
static const char *events;

static int
has_event(const char *kind)
{
        for (size_t i = 0; i < args.n_events; i++) {
                if (strcmp(args.events[i], kind) == 0)
                        return 1;
        }
        return 0;
}

/* Read a list of kinds, or `*` alone. Returns 0, or -1 with the reason. */
static int
parse_events(const char *text, struct error *error)
{
        struct topic_table *documented = topic_table_new();
        char *list = mem_strdup(text), *rest = list, *kind;
        int result = args.n_events > 0 ? error_set(error, "is repeated; give one list") : 0;

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
                if (has_event(kind))
                        continue;
                if (strcmp(kind, "*") != 0)
                        check_kind(documented, kind);
                args.events = mem_resize(args.events, args.n_events + 1, sizeof(*args.events));
                args.events[args.n_events++] = mem_strdup(kind);
        }
        if (result == 0 && args.n_events > 1 && has_event("*"))
                result = error_set(error, "'*' means every event and cannot be combined");
        free(list);
        topic_table_free(documented);
        return result;
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
                char *url = subscription_shown_url(view);

                text_print_column(view->id, strlen(view->id), 36);
                text_print_column(url, strlen(url), 50);
                free(url);
                subscription_print_events(view);
                putchar('\n');
        }
}

static int
list(struct api_client *client, const struct config *config)
{
        struct subscription_views views;
        int status = subscription_list(client, &views);

        (void)config;
        if (status == 0)
                (args.as_json ? print_list_json : print_list)(&views);
        subscription_views_clear(&views);
        return status;
}

/* Print the new webhook; its ID only if the answer has it, which the service does not document. */
static void
print_added(const struct api_client_answer *answer)
{
        struct subscription_views views;
        struct subscription_view view = {.url = (char *)(uintptr_t)args.url,
                                         .events = args.events,
                                         .n_events = args.n_events};

        service_answer_one(answer->body, answer->len, &views);
        if (views.n == 1) {
                view.id = views.items[0].id;
                view.created = views.items[0].created;
        }
        if (args.as_json) {
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
add(struct api_client *client, const struct config *config)
{
        struct api_client_answer answer = {0};
        size_t len = 0;
        int status;
        char *payload = subscription_payload(&args, config, &len, &status);

        if (payload == NULL)
                return status;
        api_client_call(client, "POST", "/webhooks", payload, len, &answer);
        secrets_free(payload, len);
        if (api_client_succeeded(&answer)) {
                print_added(&answer);
        } else {
                status = api_client_report(command_name(), &answer);
                if (api_client_may_recover(&answer))
                        fprintf(stderr, "    It may have been registered: see gatepost subscriptions list, "
                                        "or use ensure, which checks\n");
        }
        api_client_answer_clear(&answer);
        return status;
}

static int
remove_one(struct api_client *client, const struct config *config)
{
        int was_there, status = subscription_remove(client, args.id, &was_there);

        (void)config;
        if (status != 0)
                return status;
        if (!was_there)
                return command_fail(EX_NOINPUT,
                                    "the service has no subscription %s; see gatepost subscriptions list",
                                    args.id);
        if (args.as_json) {
                struct json_writer *json = json_new(1);

                json_open_object(json, NULL);
                json_member(json, "removed", args.id);
                json_close_object(json);
                json_print(json);
        } else {
                printf("removed %s\n", args.id);
        }
        return 0;
}

static void
print_ensured(const struct subscription_ensure *state)
{

        if (state->kept != NULL) {
                printf("%s ", state->was_updated       ? "updated"
                              : state->was_added       ? "added"
                              : state->useless != NULL ? "stays:"
                                                       : "is right:");
                subscription_print(state->kept);
        } else if (args.dry_run) {
                struct subscription_view wanted = {.id = "a new one:",
                                                   .url = (char *)(uintptr_t)args.url,
                                                   .events = args.events,
                                                   .n_events = args.n_events};

                printf("would add ");
                subscription_print(&wanted);
        }
        for (size_t i = 0; i < (args.dry_run ? state->n_old : state->n_removed); i++) {
                printf("%s ", args.dry_run ? "would remove" : "removed");
                subscription_print(state->old[i]);
        }
}

static void
print_ensured_json(const struct subscription_ensure *state)
{
        struct json_writer *json = json_new(1);

        json_open_object(json, NULL);
        json_member(json, "id", state->kept == NULL ? NULL : state->kept->id);
        json_flag(json, "added",
                  args.dry_run ? state->kept == NULL : state->was_added && !state->was_updated);
        json_flag(json, "updated", state->was_updated);
        json_open_array(json, "removed");
        for (size_t i = 0; i < (args.dry_run ? state->n_old : state->n_removed); i++)
                json_member(json, NULL, state->old[i]->id);
        json_close_array(json);
        json_flag(json, "dryRun", args.dry_run);
        json_close_object(json);
        json_print(json);
}

/* Warn of a new webhook that the receiver of the configuration refuses, since it lists others only. */
static void
warn_of_unlisted(const struct config *config, const struct subscription_view *view)
{
        size_t n = 0;

        for (size_t s = 0; s < config->n_sources; s++) {
                n += config->sources[s].n_webhook_ids;
                if (config_lists_webhook(&config->sources[s], view->id))
                        return;
        }
        if (n > 0)
                (void)command_fail(0,
                                   "%s is in no webhook_id of the configuration: if its source has others, "
                                   "add it there on all receivers, and reload them; they refuse its "
                                   "deliveries until then",
                                   view->id);
}

static int
ensure(struct api_client *client, const struct config *config)
{
        struct subscription_ensure state = {.client = client, .args = &args};
        size_t len = 0;
        int status;
        char *payload = subscription_payload(&args, config, &len, &status);

        if (payload == NULL)
                return status;
        status = subscription_ensure(&state, payload, len);
        secrets_free(payload, len);
        if (status == 0 || state.was_added || state.n_removed > 0)
                (args.as_json ? print_ensured_json : print_ensured)(&state);
        if (state.was_added && state.kept != NULL)
                warn_of_unlisted(config, state.kept);
        subscription_ensure_clear(&state);
        return status;
}

/* Call the service with the key of the configuration. Returns an exit status. */
static int
call(const struct config *config, int (*action)(struct api_client *client, const struct config *config))
{
        int status;
        struct api_client *client = api_client_open(config, args.timeout_ms, &status);

        if (client != NULL)
                status = action(client, config);
        api_client_close(client);
        return status;
}

static int
run_list(const struct config *config)
{
        return call(config, list);
}

static int
run_add(const struct config *config)
{
        return call(config, add);
}

static int
run_remove(const struct config *config)
{
        return call(config, remove_one);
}

static int
run_ensure(const struct config *config)
{
        return call(config, ensure);
}

static int
check_id(struct error *error)
{
        return *args.id == '\0' ? error_set(error, "needs an ID, as gatepost subscriptions list shows it")
                                : 0;
}

/* clang-format off */
#define WEBHOOK_OPTIONS \
    {"url", "URL", "let the service deliver to this URL", .is_required = 1, .text = &args.url}, \
    {"events", "LIST", "subscribe to these kinds, separated by commas, or '*' for all", .is_required = 1, \
     .text = &events, .parse = parse_events}, \
    {"secret-file", "FILE", "use the signing secret in this file", .is_required = 1, \
     .text = &args.secret_file}
#define CALL_OPTIONS \
    {"json", NULL, "print JSON", .flag = &args.as_json}, \
    {"timeout", "TIME", "end each call of the service after this time (default: 10s)", \
     .duration_ms = &args.timeout_ms, .min = 1, .max = 600000}
/* clang-format on */

static const struct command_option list_options[] = {CALL_OPTIONS};

const struct command subscriptions_list_command = {
    .name = "subscriptions list",
    .help = "list the webhooks registered with the service",
    .run = run_list,
    COMMAND_OPTIONS(list_options),
};

static const struct command_option add_options[] = {WEBHOOK_OPTIONS, CALL_OPTIONS};

const struct command subscriptions_add_command = {
    .name = "subscriptions add",
    .help = "register a webhook with the service",
    .run = run_add,
    COMMAND_OPTIONS(add_options),
};

static const struct command_option remove_options[] = {
    {NULL, "ID", "remove this webhook; gatepost subscriptions list shows the IDs", .text = &args.id},
    CALL_OPTIONS,
};

const struct command subscriptions_remove_command = {
    .name = "subscriptions remove",
    .help = "remove a webhook from the service",
    .check = check_id,
    .run = run_remove,
    COMMAND_OPTIONS(remove_options),
};

static const struct command_option ensure_options[] = {
    WEBHOOK_OPTIONS,
    {"rotate", NULL, "replace it even if it is right, because the secret has changed", .flag = &args.rotate},
    {"dry-run", NULL, "only print what would be done", .flag = &args.dry_run},
    CALL_OPTIONS,
};

const struct command subscriptions_ensure_command = {
    .name = "subscriptions ensure",
    .help = "create or update the webhook for a URL",
    .run = run_ensure,
    COMMAND_OPTIONS(ensure_options),
};
