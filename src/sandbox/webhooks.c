#include "sandbox/webhooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/mem.h"
#include "config/secrets.h"
#include "model/topic_table.h"

/*
 * Check an endpoint URL: absolute, https (or http to a loopback address or localhost), without a user name
 * and a password, which the log would show. libcurl, which delivers, parses it.
 */
static int
check_url(const char *text, struct error *error)
{
        CURLU *url = curl_url();
        char *scheme = NULL, *host = NULL, *login = NULL;
        int result = 0;

        if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK ||
            curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
            curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
                result = error_set(error, "must be an absolute URL, such as https://gateway.example/hooks");
        else if (strcmp(scheme, "https") != 0 &&
                 (strcmp(scheme, "http") != 0 || !address_is_loopback_host(host)))
                result =
                    error_set(error, "must be an https URL; http is for 127.0.0.1, [::1] and localhost only");
        else if (curl_url_get(url, CURLUPART_USER, &login, 0) == CURLUE_OK ||
                 curl_url_get(url, CURLUPART_PASSWORD, &login, 0) == CURLUE_OK)
                result = error_set(error, "must not have a user name or password");
        curl_free(scheme);
        curl_free(host);
        curl_free(login);
        curl_url_cleanup(url);
        return result;
}

static const struct member_rule members[] = {
    {"url", JSON_STRING, 1},
    {"events", JSON_ARRAY, 1},
    {"secret", JSON_STRING, 1},
};

/* Return whether the text is a documented kind, `reporting_batch.*` for that family, or `*` for all kinds. */
static int
is_filter(const char *text)
{
        return strcmp(text, "*") == 0 || topic_table_documented_name(text, strlen(text)) != NULL;
}

static void
check_events(const struct json_value *events, struct violations *violations)
{
        size_t index = 0;
        char field[32];

        if (events->n == 0)
                violations_add(violations, "events", "must contain a kind of event, or *");
        for (const struct json_value *event = events->first; event != NULL; event = event->next) {
                (void)snprintf(field, sizeof(field), "events[%zu]", index++);
                if (event->type != JSON_STRING || !is_filter(event->text))
                        violations_add(violations, field, "is not a kind of event");
        }
}

void
webhooks_check(const struct json_value *payload, struct violations *violations)
{
        const struct json_value *events = json_tree_get(payload, "events");
        const char *url = json_tree_text(payload, "url"), *secret = json_tree_text(payload, "secret");
        struct error error;

        violations_check_members(violations, "", payload, members, ARRAY_LEN(members));
        if (url != NULL && check_url(url, &error) != 0)
                violations_add(violations, "url", "%s", error.text);
        if (events != NULL && events->type == JSON_ARRAY)
                check_events(events, violations);
        if (secret != NULL && (strlen(secret) < SIGNATURE_SECRET_MIN || strlen(secret) > SECRETS_MAX))
                violations_add(violations, "secret", "must have %d to %d bytes", SIGNATURE_SECRET_MIN,
                               SECRETS_MAX);
}

struct webhook *
webhooks_new(const struct json_value *payload, const char *owner)
{
        const struct json_value *events = json_tree_get(payload, "events");
        const char *secret = json_tree_text(payload, "secret");
        struct webhook *new = mem_alloc(sizeof(*new));

        (void)bytes_random_uuid(new->id);
        new->url = mem_strdup(json_tree_text(payload, "url"));
        new->key = signature_key_new(secret, strlen(secret));
        if (new->key == NULL)
                mem_exit();
        new->owner = owner == NULL ? NULL : mem_strdup(owner);
        new->created_ms = clock_now_ms();
        new->events = mem_alloc(events->n * sizeof(*new->events));
        for (const struct json_value *event = events->first; event != NULL; event = event->next)
                new->events[new->n_events++] = mem_strdup(event->text);
        return new;
}

void
webhooks_free(struct webhook *webhook)
{
        if (webhook == NULL)
                return;
        delivery_queue_free(webhook->queue);
        for (size_t i = 0; i < webhook->n_events; i++)
                free(webhook->events[i]);
        free(webhook->events);
        free(webhook->url);
        signature_key_free(webhook->key);
        free(webhook->owner);
        free(webhook);
}

static int
matches(const char *filter, const char *kind)
{
        size_t len = strlen(filter);

        if (len > 0 && filter[len - 1] == '*')
                return strncmp(kind, filter, len - 1) == 0;
        return strcmp(filter, kind) == 0;
}

int
webhooks_wants(const struct webhook *webhook, const char *entity, const char *kind)
{
        if (webhook->owner != NULL && strcmp(webhook->owner, entity) != 0)
                return 0;
        for (size_t i = 0; i < webhook->n_events; i++) {
                if (matches(webhook->events[i], kind))
                        return 1;
        }
        return 0;
}

struct webhook *
webhooks_find(const struct webhooks *webhooks, const char *id)
{
        struct webhook *each;

        TAILQ_FOREACH(each, webhooks, entry)
        {
                if (strcmp(each->id, id) == 0)
                        return each;
        }
        return NULL;
}

void
webhooks_clear(struct webhooks *webhooks)
{
        struct webhook *each;

        while ((each = TAILQ_FIRST(webhooks)) != NULL) {
                TAILQ_REMOVE(webhooks, each, entry);
                webhooks_free(each);
        }
}
