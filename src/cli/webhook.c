#include "cli/webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <curl/curl.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/uri.h"

static char *
copy_text(const struct json_value *object, const char *name)
{
        const char *text = json_tree_text(object, name);

        return text == NULL ? NULL : mem_strdup(text);
}

static char *
copy_id(const struct json_value *object)
{
        const struct json_value *id = json_tree_get(object, "id");

        if (id == NULL || (id->type != JSON_STRING && id->type != JSON_NUMBER) || id->text[0] == '\0')
                return NULL;
        return mem_strdup(id->text);
}

static void
read_webhook(const struct json_value *object, struct registered_webhook *webhook)
{
        const struct json_value *list = json_tree_get(object, "events");

        *webhook = (struct registered_webhook){.id = copy_id(object),
                                               .url = copy_text(object, "url"),
                                               .created = copy_text(object, "createdAt"),
                                               .shows_events = list != NULL && list->type == JSON_ARRAY};
        if (!webhook->shows_events)
                return;
        webhook->events = mem_alloc((list->n + 1) * sizeof(*webhook->events));
        for (const struct json_value *each = list->first; each != NULL; each = each->next) {
                if (each->type == JSON_STRING)
                        webhook->events[webhook->n_events++] = mem_strdup(each->text);
        }
}

void
webhook_clear(struct registered_webhook *webhook)
{
        for (size_t i = 0; i < webhook->n_events; i++)
                free(webhook->events[i]);
        free(webhook->events);
        free(webhook->id);
        free(webhook->url);
        free(webhook->created);
}

/* Return the value itself if it has the type, else its first member that has. NULL: there is none. */
static const struct json_value *
find_value(const struct json_value *value, enum json_type type)
{
        const struct json_value *member;

        if (value == NULL || value->type == type || value->type != JSON_OBJECT)
                return value != NULL && value->type == type ? value : NULL;
        for (member = value->first; member != NULL && member->type != type; member = member->next)
                ;
        return member;
}

void
webhook_read_added(const struct json_value *answer, struct registered_webhook *webhook)
{
        const struct json_value *member = answer == NULL ? NULL : answer->first;

        if (json_tree_get(answer, "id") == NULL) {
                while (member != NULL && json_tree_get(member, "id") == NULL)
                        member = member->next;
                answer = member;
        }
        read_webhook(answer, webhook);
}

static int
read_list(const struct json_value *answer, struct webhooks *webhooks, struct error *error)
{
        const struct json_value *list = find_value(answer, JSON_ARRAY);

        if (list == NULL)
                return error_set(error, "there is no list of webhooks in it");
        webhooks->items = mem_alloc((list->n + 1) * sizeof(*webhooks->items));
        for (const struct json_value *each = list->first; each != NULL; each = each->next) {
                struct registered_webhook *webhook = &webhooks->items[webhooks->n++];

                read_webhook(each, webhook);
                if (webhook->id == NULL || webhook->url == NULL)
                        return error_set(error, "webhook %zu in it has no %s", webhooks->n,
                                         webhook->id == NULL ? "id" : "url");
        }
        return 0;
}

int
webhook_list(struct service *service, struct webhooks *webhooks, struct service_failure *failure)
{
        struct json_value *answer;
        int status = service_request(service, "GET", "/webhooks", NULL, &answer, failure);

        *webhooks = (struct webhooks){0};
        if (status == 0 && read_list(answer, webhooks, &failure->reason) != 0) {
                (void)error_prefix(&failure->reason, "the service's answer is not understood");
                failure->remedy = "check base_url in [service]";
                status = EX_DATAERR;
        }
        json_tree_free(answer);
        return status;
}

void
webhook_list_clear(struct webhooks *webhooks)
{
        for (size_t i = 0; i < webhooks->n; i++)
                webhook_clear(&webhooks->items[i]);
        free(webhooks->items);
}

int
webhook_remove(struct service *service, const char *id, struct service_failure *failure)
{
        char *escaped = curl_easy_escape(NULL, id, 0), *path = mem_printf("/webhooks/%s", escaped);
        struct json_value *answer = NULL;
        int status;

        if (strcmp(id, ".") == 0 || strcmp(id, "..") == 0) {
                /* Dots cannot be escaped: a proxy or the service would resolve them as path segments. */
                *failure = (struct service_failure){0};
                (void)error_set(&failure->reason, "%s is not an ID", id);
                status = EX_DATAERR;
        } else {
                status = service_request(service, "DELETE", path, NULL, &answer, failure);
        }
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

static int
contains(char *const *events, size_t n, const char *event)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(events[i], event) == 0)
                        return 1;
        }
        return 0;
}

int
webhook_has_events(const struct registered_webhook *webhook, char *const *events, size_t n)
{
        for (size_t i = 0; i < webhook->n_events; i++) {
                if (!contains(events, n, webhook->events[i]))
                        return 0;
        }
        for (size_t i = 0; i < n; i++) {
                if (!contains(webhook->events, webhook->n_events, events[i]))
                        return 0;
        }
        return 1;
}

/* Return the events, separated by commas. */
static char *
join_events(const struct registered_webhook *webhook)
{
        char *joined = mem_strdup(""), *longer;

        for (size_t i = 0; i < webhook->n_events; i++) {
                longer = mem_printf("%s%s%s", joined, i == 0 ? "" : ",", webhook->events[i]);
                free(joined);
                joined = longer;
        }
        return joined;
}

char *
webhook_describe(const struct registered_webhook *webhook)
{
        char *url = uri_hide_secrets(webhook->url), *events = join_events(webhook),
             *text = mem_printf("%s %s %s", webhook->id, url, events);

        free(url);
        free(events);
        return text;
}

void
webhook_put_members(struct json_writer *json, const struct registered_webhook *webhook)
{
        char *url = uri_hide_secrets(webhook->url);

        json_member(json, "id", webhook->id);
        json_member(json, "url", url);
        free(url);
        json_open_array(json, "events");
        for (size_t i = 0; i < webhook->n_events; i++)
                json_member(json, NULL, webhook->events[i]);
        json_close_array(json);
        json_member(json, "createdAt", webhook->created);
}
