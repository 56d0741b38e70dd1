#include "cli/webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <curl/curl.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/uri.h"

static const char *
read_id(const struct json_value *object)
{
        const struct json_value *id = json_tree_get(object, "id");

        if (id == NULL || (id->type != JSON_STRING && id->type != JSON_NUMBER) || id->text[0] == '\0')
                return NULL;
        return id->text;
}

static struct registered_webhook
read_webhook(const struct json_value *object)
{
        const struct json_value *events = json_tree_get(object, "events");

        return (struct registered_webhook){.id = read_id(object),
                                           .url = json_tree_text(object, "url"),
                                           .events =
                                               events != NULL && events->type == JSON_ARRAY ? events : NULL,
                                           .created = json_tree_text(object, "createdAt")};
}

const char *
webhook_id_in(const struct json_value *answer)
{
        const char *id = read_id(answer);
        const struct json_value *member = answer == NULL ? NULL : answer->first;

        for (; member != NULL && id == NULL; member = member->next)
                id = read_id(member);
        return id;
}

/* Return the array that an answer is, or its first member that is one. NULL: there is none. */
static const struct json_value *
find_array(const struct json_value *answer)
{
        const struct json_value *found = answer;

        if (answer != NULL && answer->type == JSON_OBJECT) {
                for (found = answer->first; found != NULL && found->type != JSON_ARRAY; found = found->next)
                        ;
        }
        return found != NULL && found->type == JSON_ARRAY ? found : NULL;
}

static int
read_list(struct webhooks *webhooks, struct error *error)
{
        const struct json_value *array = find_array(webhooks->answer);

        if (array == NULL)
                return error_set(error, "the service's answer has no list of webhooks");
        webhooks->items = mem_alloc((array->n + 1) * sizeof(*webhooks->items));
        for (const struct json_value *each = array->first; each != NULL; each = each->next) {
                struct registered_webhook *webhook = &webhooks->items[webhooks->n++];

                *webhook = read_webhook(each);
                if (webhook->id == NULL || webhook->url == NULL)
                        return error_set(error, "webhook %zu in the service's answer has no %s", webhooks->n,
                                         webhook->id == NULL ? "id" : "url");
        }
        return 0;
}

int
webhook_list(const struct config *config, struct webhooks *webhooks, struct service_failure *failure)
{
        int status;

        *webhooks = (struct webhooks){0};
        status = service_request(config, "GET", "/webhooks", NULL, &webhooks->answer, failure);
        if (status == 0 && read_list(webhooks, &failure->reason) != 0) {
                failure->remedy = "check base_url in [service]";
                status = EX_DATAERR;
        }
        return status;
}

void
webhook_list_clear(struct webhooks *webhooks)
{
        free(webhooks->items);
        json_tree_free(webhooks->answer);
}

int
webhook_remove(const struct config *config, const char *id, struct service_failure *failure)
{
        char *escaped = curl_easy_escape(NULL, id, 0), *path = mem_printf("/webhooks/%s", escaped);
        struct json_value *answer;
        int status = service_request(config, "DELETE", path, NULL, &answer, failure);

        if (failure->http_status == 404 || failure->http_status == 410)
                status = EX_NOINPUT;
        json_tree_free(answer);
        curl_free(escaped);
        free(path);
        return status;
}

/* Return a URL in its normal form, or as it is. The caller frees it. */
static char *
normalise(const char *text)
{
        CURLU *url = curl_url();
        char *normal = NULL, *copy;

        if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK)
                (void)curl_url_get(url, CURLUPART_URL, &normal, CURLU_NO_DEFAULT_PORT);
        copy = mem_strdup(normal == NULL ? text : normal);
        curl_free(normal);
        curl_url_cleanup(url);
        return copy;
}

int
webhook_same_url(const char *a, const char *b)
{
        char *one = normalise(a), *other = normalise(b);
        int is_same = strcmp(one, other) == 0;

        free(one);
        free(other);
        return is_same;
}

/* Return whether each text of an array is in another, too. */
static int
is_subset(const struct json_value *texts, const struct json_value *others)
{
        for (const struct json_value *each = texts->first; each != NULL; each = each->next) {
                const struct json_value *other = others->first;

                while (other != NULL && !(each->type == JSON_STRING && other->type == JSON_STRING &&
                                          strcmp(each->text, other->text) == 0))
                        other = other->next;
                if (other == NULL)
                        return 0;
        }
        return 1;
}

int
webhook_has_events(const struct registered_webhook *webhook, const struct json_value *events)
{
        return webhook->events == NULL ||
               (is_subset(webhook->events, events) && is_subset(events, webhook->events));
}

void
webhook_print(const char *done, const struct registered_webhook *webhook)
{
        char *url = uri_hide_secrets(webhook->url);
        const char *separator = " ";

        fputs(done, stdout);
        text_print(stdout, webhook->id, strlen(webhook->id));
        putchar(' ');
        text_print(stdout, url, strlen(url));
        for (const struct json_value *each = webhook->events == NULL ? NULL : webhook->events->first;
             each != NULL; each = each->next, separator = ",") {
                fputs(separator, stdout);
                if (each->type == JSON_STRING)
                        text_print(stdout, each->text, strlen(each->text));
        }
        putchar('\n');
        free(url);
}

void
webhook_put(struct json_writer *json, const struct registered_webhook *webhook)
{
        char *url = uri_hide_secrets(webhook->url);

        json_open_object(json, NULL);
        json_member(json, "id", webhook->id);
        json_member(json, "url", url);
        json_open_array(json, "events");
        for (const struct json_value *each = webhook->events == NULL ? NULL : webhook->events->first;
             each != NULL; each = each->next)
                json_tree_write(json, each);
        json_close_array(json);
        json_member(json, "createdAt", webhook->created);
        json_close_object(json);
        free(url);
}
