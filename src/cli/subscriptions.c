#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/json_tree.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/source_choice.h"
#include "cli/webhook.h"
#include "config/secrets.h"

/* The commands about webhooks at the service. */

static struct {
        const char *url;
        const char *kinds;         /* with commas between them */
        struct json_value *events; /* an array of them */
        const char *secret_file;
        const char *id;
        int as_json;
        int rotate;
} args;

/* Read a list of kinds. The service knows which there are. Returns 0, or -1 with the reason. */
static int
parse_events(const char *text, struct error *error)
{
        char *list = mem_strdup(text), *rest = list, *array;
        struct json_writer *json = json_new(0);
        size_t len;

        json_open_array(json, NULL);
        for (const char *kind; (kind = strsep(&rest, ",")) != NULL;)
                json_member(json, NULL, kind);
        json_close_array(json);
        array = json_take(json, &len);
        json_tree_free(args.events); /* of the same option before */
        args.events = json_tree_parse(array, len, error);
        free(array);
        free(list);
        return args.events == NULL ? -1 : 0;
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
        for (const struct json_value *each = args.events->first; each != NULL; each = each->next)
                json_tree_write(json, each);
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
        else if (!text_is_utf8(secret, len))
                *status = command_fail(EX_DATAERR, "the secret in %s is not UTF-8, as JSON requires",
                                       args.secret_file);
        else
                payload = write_payload(secret, len);
        secrets_free(secret, len);
        return payload;
}

static void
print_list_json(const struct webhooks *webhooks)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < webhooks->n; i++)
                webhook_put(json, &webhooks->items[i]);
        json_close_array(json);
        json_print(json);
}

static int
run_list(const struct config *config)
{
        struct webhooks webhooks;
        struct service_failure failure;
        int status = webhook_list(config, &webhooks, &failure);

        if (status != 0)
                status = fail(status, &failure);
        else if (args.as_json)
                print_list_json(&webhooks);
        for (size_t i = 0; i < webhooks.n && status == 0 && !args.as_json; i++)
                webhook_print("", &webhooks.items[i]);
        webhook_list_clear(&webhooks);
        return status;
}

/*
 * Register the webhook, and print it. Returns 0 with its ID, which the caller frees, or NULL if the service
 * names none; or an exit status after printing why.
 */
static int
register_webhook(const struct config *config, char **id)
{
        struct registered_webhook added = {.id = "(unknown ID)", .url = args.url, .events = args.events};
        struct service_failure failure;
        struct json_value *answer;
        int status = 0;
        char *payload = make_payload(&status);

        *id = NULL;
        if (payload == NULL)
                return status;
        status = service_request(config, "POST", "/webhooks", payload, &answer, &failure);
        secrets_free(payload, strlen(payload));
        if (status != 0 && failure.may_be_done)
                failure.remedy = "it may have been registered: see gatepost subscriptions list";
        if (status != 0)
                return fail(status, &failure);
        if (webhook_id_in(answer) != NULL)
                added.id = *id = mem_strdup(webhook_id_in(answer));
        webhook_print("added ", &added);
        json_tree_free(answer);
        return 0;
}

static int
run_add(const struct config *config)
{
        char *id;
        int status = register_webhook(config, &id);

        free(id);
        return status;
}

static int
run_remove(const struct config *config)
{
        struct service_failure failure;
        int status = webhook_remove(config, args.id, &failure);

        if (status == EX_NOINPUT)
                failure.remedy = "gatepost subscriptions list shows the IDs";
        if (status != 0)
                return fail(status, &failure);
        printf("removed %s\n", args.id);
        return 0;
}

/*
 * Find the webhook that has the wanted URL and events. NULL: there is none, or several, of which only one may
 * have the present secret.
 */
static const struct registered_webhook *
find_right(const struct webhooks *webhooks)
{
        const struct registered_webhook *right = NULL;
        size_t n = 0;

        for (size_t i = 0; i < webhooks->n; i++) {
                const struct registered_webhook *webhook = &webhooks->items[i];

                if (!webhook_same_url(webhook->url, args.url) || !webhook_has_events(webhook, args.events))
                        continue;
                right = webhook;
                n++;
        }
        return n == 1 ? right : NULL;
}

/* Remove all webhooks at the URL but the one with this ID. Returns an exit status. */
static int
remove_others(const struct config *config, const struct webhooks *webhooks, const char *kept)
{
        struct service_failure failure;
        int status = 0;

        for (size_t i = 0; i < webhooks->n && status == 0; i++) {
                const struct registered_webhook *webhook = &webhooks->items[i];

                if (!webhook_same_url(webhook->url, args.url) || strcmp(webhook->id, kept) == 0)
                        continue;
                status = webhook_remove(config, webhook->id, &failure);
                if (status == EX_NOINPUT)
                        status = 0; /* somebody else has removed it */
                if (status == 0)
                        webhook_print("removed ", webhook);
        }
        return status == 0 ? 0 : fail(status, &failure);
}

/* Make the wanted webhook the only one at its URL. The old ones are removed last, so no event is missed. */
static int
replace(const struct config *config, const struct webhooks *webhooks)
{
        const struct registered_webhook *right = args.rotate ? NULL : find_right(webhooks);
        char *id = NULL;
        int status = 0;

        if (right != NULL) {
                webhook_print("is right: ", right);
                return remove_others(config, webhooks, right->id);
        }
        status = register_webhook(config, &id);
        if (status == 0 && id == NULL)
                status = command_fail(EX_DATAERR, "the service names no ID of the new webhook; if the list "
                                                  "has old ones at the URL, remove them");
        else if (status == 0)
                status = remove_others(config, webhooks, id);
        free(id);
        return status;
}

static int
run_ensure(const struct config *config)
{
        struct webhooks webhooks;
        struct service_failure failure;
        int status = webhook_list(config, &webhooks, &failure);

        status = status == 0 ? replace(config, &webhooks) : fail(status, &failure);
        webhook_list_clear(&webhooks);
        return status;
}

static int
check_id(struct error *error)
{
        /* Dots would be resolved on the way, as a path to something else than a webhook. */
        return args.id[strspn(args.id, ".")] == '\0' ? error_set(error, "'%s' is not an ID", args.id) : 0;
}

/* clang-format off */
#define WEBHOOK_OPTIONS \
    {"url", "URL", "let the service deliver to this URL", .is_required = 1, .text = &args.url}, \
    {"events", "LIST", "subscribe to these kinds, separated by commas, or '*' for all", .is_required = 1, \
     .text = &args.kinds, .parse = parse_events}, \
    {"secret-file", "FILE", "use the signing secret in this file", .is_required = 1, \
     .text = &args.secret_file}
/* clang-format on */

static const struct command_option list_options[] = {{"json", NULL, "print JSON", .flag = &args.as_json}};

const struct command subscriptions_list_command = {
    .name = "subscriptions list",
    .help = "list the webhooks registered with the service",
    .run = run_list,
    COMMAND_OPTIONS(list_options),
};

static const struct command_option add_options[] = {WEBHOOK_OPTIONS};

const struct command subscriptions_add_command = {
    .name = "subscriptions add",
    .help = "register a webhook with the service",
    .run = run_add,
    COMMAND_OPTIONS(add_options),
};

static const struct command_option remove_options[] = {
    {NULL, "ID", "remove this webhook; gatepost subscriptions list shows the IDs", .text = &args.id},
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
};

const struct command subscriptions_ensure_command = {
    .name = "subscriptions ensure",
    .help = "create or update the webhook for a URL",
    .run = run_ensure,
    COMMAND_OPTIONS(ensure_options),
};
