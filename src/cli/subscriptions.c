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
#include "cli/source_choice.h"
#include "cli/webhook.h"
#include "cli/webhook_ensure.h"
#include "config/secrets.h"

/* The commands about webhooks at the service. */

static struct {
        const char *url;
        const char *list; /* of events, as given */
        char **events;
        size_t n_events;
        const char *secret_file;
        const char *id;
        uint64_t timeout_ms;
        int as_json;
        int dry_run;
        int rotate;
} args = {.timeout_ms = HTTP_CLIENT_TIMEOUT_MS};

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
        char *list = mem_strdup(text), *rest = list, *kind;
        int result = args.n_events > 0 ? error_set(error, "is repeated; give one list") : 0;

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
                args.events = mem_resize(args.events, args.n_events + 1, sizeof(*args.events));
                args.events[args.n_events++] = mem_strdup(kind);
        }
        if (result == 0 && args.n_events > 1 && has_event("*"))
                result = error_set(error, "'*' means every event and cannot be combined");
        free(list);
        return result;
}

/* Print why a request has failed. Returns the exit status. */
static int
fail(int status, const struct service_failure *failure)
{
        (void)command_fail(status, "%s", failure->reason.text);
        if (failure->remedy != NULL)
                command_advise("remedy: %s", failure->remedy);
        return status;
}

/* Write the JSON that registers the webhook. The caller frees it with secrets_free(). */
static char *
write_payload(const char *secret, size_t secret_len)
{
        struct json_writer *json = json_new(0);
        size_t len;

        json_open_object(json, NULL);
        json_member(json, "url", args.url);
        json_open_array(json, "events");
        for (size_t i = 0; i < args.n_events; i++)
                json_member(json, NULL, args.events[i]);
        json_close_array(json);
        json_string(json, "secret", secret, secret_len);
        json_close_object(json);
        return json_take(json, &len);
}

/* Make the payload, with the secret from its file. Returns NULL, with the exit status, after printing why. */
static char *
make_payload(int *status)
{
        struct error error;
        size_t len = 0;
        char *secret = secrets_read_signing(args.secret_file, &len, NULL, &error), *payload = NULL;

        if (secret == NULL)
                *status = command_fail(source_choice_secret_status(args.secret_file), "%s", error.text);
        else if (!text_is_utf8(args.url, strlen(args.url)))
                *status = command_fail(EX_USAGE, "--url is not UTF-8");
        else if (!text_is_utf8(secret, len))
                *status = command_fail(EX_DATAERR, "the secret in %s is not UTF-8, as JSON requires",
                                       args.secret_file);
        else
                payload = write_payload(secret, len);
        secrets_free(secret, len);
        return payload;
}

/* Print a webhook on one line, after what was done with it. */
static void
print_webhook(const char *done, const struct registered_webhook *webhook)
{
        char *text = webhook_describe(webhook);

        fputs(done, stdout);
        text_print(stdout, text, strlen(text));
        putchar('\n');
        free(text);
}

static void
print_list_json(const struct webhooks *webhooks)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < webhooks->n; i++) {
                json_open_object(json, NULL);
                webhook_put_members(json, &webhooks->items[i]);
                json_close_object(json);
        }
        json_close_array(json);
        json_print(json);
}

static int
list(struct service *service)
{
        struct webhooks webhooks;
        struct service_failure failure;
        int status = webhook_list(service, &webhooks, &failure);

        if (status != 0)
                status = fail(status, &failure);
        else if (args.as_json)
                print_list_json(&webhooks);
        for (size_t i = 0; i < webhooks.n && status == 0 && !args.as_json; i++)
                print_webhook("", &webhooks.items[i]);
        webhook_list_clear(&webhooks);
        return status;
}

/* Return the webhook that the options describe, under an ID. */
static struct registered_webhook
described_webhook(const char *id)
{
        return (struct registered_webhook){.id = (char *)(uintptr_t)id,
                                           .url = (char *)(uintptr_t)args.url,
                                           .events = args.events,
                                           .n_events = args.n_events};
}

static int
add(struct service *service)
{
        struct registered_webhook added, shown;
        struct service_failure failure;
        struct json_value *answer;
        int status;
        char *payload = make_payload(&status);

        if (payload == NULL)
                return status;
        status = service_request(service, "POST", "/webhooks", payload, &answer, &failure);
        secrets_free(payload, strlen(payload));
        if (status != 0 && service_may_have_done(&failure))
                failure.remedy = "it may have been registered: see gatepost subscriptions list";
        if (status != 0)
                return fail(status, &failure);
        webhook_read_added(answer, &added);
        shown = described_webhook(added.id == NULL ? "(unknown ID)" : added.id);
        print_webhook("added ", &shown);
        webhook_clear(&added);
        json_tree_free(answer);
        return 0;
}

static int
remove_one(struct service *service)
{
        struct service_failure failure;
        int status = webhook_remove(service, args.id, &failure);

        if (status == EX_NOINPUT)
                return command_fail(status, "the service has no webhook %s; see gatepost subscriptions list",
                                    args.id);
        if (status != 0)
                return fail(status, &failure);
        printf("removed %s\n", args.id);
        return 0;
}

static void
print_ensured(const struct webhook_ensure *ensure)
{
        const char *done = ensure->was_updated ? "updated " : ensure->was_added ? "added " : "is right: ";
        const struct registered_webhook wanted = described_webhook("a new one:");

        if (ensure->kept != NULL)
                print_webhook(done, ensure->kept);
        else if (ensure->is_dry)
                print_webhook("would add ", &wanted);
        for (size_t i = 0; i < (ensure->is_dry ? ensure->n_old : ensure->n_removed); i++)
                print_webhook(ensure->is_dry ? "would remove " : "removed ", ensure->old[i]);
}

static int
ensure(struct service *service)
{
        struct webhook_ensure ensure = {.service = service,
                                        .url = args.url,
                                        .events = args.events,
                                        .n_events = args.n_events,
                                        .rotates = args.rotate,
                                        .is_dry = args.dry_run};
        struct service_failure failure;
        int status;
        char *payload = make_payload(&status);

        if (payload == NULL)
                return status;
        ensure.payload = payload;
        status = webhook_ensure(&ensure, &failure);
        secrets_free(payload, strlen(payload));
        if (status == 0 || ensure.kept != NULL)
                print_ensured(&ensure);
        if (status != 0)
                (void)fail(status, &failure);
        webhook_ensure_clear(&ensure);
        return status;
}

/* Call the service with the key of the configuration. Returns an exit status. */
static int
with_service(const struct config *config, int (*action)(struct service *service))
{
        struct error error;
        int status;
        struct service *service = service_open(config, args.timeout_ms, &status, &error);

        if (service == NULL)
                return command_fail(status, "%s", error.text);
        status = action(service);
        service_close(service);
        return status;
}

static int
run_list(const struct config *config)
{
        return with_service(config, list);
}

static int
run_add(const struct config *config)
{
        return with_service(config, add);
}

static int
run_remove(const struct config *config)
{
        return with_service(config, remove_one);
}

static int
run_ensure(const struct config *config)
{
        return with_service(config, ensure);
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
     .text = &args.list, .parse = parse_events}, \
    {"secret-file", "FILE", "use the signing secret in this file", .is_required = 1, \
     .text = &args.secret_file}
#define TIMEOUT_OPTION \
    {"timeout", "TIME", "end each call of the service after this time (default: 10s)", \
     .duration_ms = &args.timeout_ms, .min = 1, .max = 600000}
/* clang-format on */

static const struct command_option list_options[] = {{"json", NULL, "print JSON", .flag = &args.as_json},
                                                     TIMEOUT_OPTION};

const struct command subscriptions_list_command = {
    .name = "subscriptions list",
    .help = "list the webhooks registered with the service",
    .run = run_list,
    COMMAND_OPTIONS(list_options),
};

static const struct command_option add_options[] = {WEBHOOK_OPTIONS, TIMEOUT_OPTION};

const struct command subscriptions_add_command = {
    .name = "subscriptions add",
    .help = "register a webhook with the service",
    .run = run_add,
    COMMAND_OPTIONS(add_options),
};

static const struct command_option remove_options[] = {
    {NULL, "ID", "remove this webhook; gatepost subscriptions list shows the IDs", .text = &args.id},
    TIMEOUT_OPTION,
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
    TIMEOUT_OPTION,
};

const struct command subscriptions_ensure_command = {
    .name = "subscriptions ensure",
    .help = "create or update the webhook for a URL",
    .run = run_ensure,
    COMMAND_OPTIONS(ensure_options),
};
