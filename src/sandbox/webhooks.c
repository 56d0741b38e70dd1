#include "sandbox/webhooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/secrets.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"

#define EVENTS_MAX 100

/* The endpoint URL. */

static int
has_part(CURLU *url, CURLUPart part)
{
        char *text = NULL;
        int found = curl_url_get(url, part, &text, 0) == CURLUE_OK;

        curl_free(text);
        return found;
}

static int
check_parts(CURLU *url, struct error *error)
{
        char *scheme = NULL, *host = NULL;
        int result = 0;

        if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
            curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
                result = error_set(error, "must be an absolute URL, such as https://gateway.example/hooks");
        else if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)
                result = error_set(error, "must be an https URL");
        else if (strcmp(scheme, "http") == 0 && !address_is_loopback_host(host))
                result =
                    error_set(error, "must be an https URL; http is for 127.0.0.1, [::1] and localhost only");
        else if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
                result = error_set(error, "must not have a user name or password");
        else if (has_part(url, CURLUPART_FRAGMENT))
                result = error_set(error, "must not have a fragment");
        curl_free(scheme);
        curl_free(host);
        return result;
}

int
webhooks_check_url(const char *text, struct error *error)
{
        CURLU *url;
        int result;

        if (strlen(text) > WEBHOOKS_URL_MAX)
                return error_set(error, "must have at most %d bytes", WEBHOOKS_URL_MAX);
        for (const char *c = text; *c != '\0'; c++) {
                if (*c <= ' ' || *c > '~')
                        return error_set(error, "must consist of visible ASCII characters");
        }
        url = curl_url();
        if (url == NULL)
                return error_set(error, "cannot be parsed: out of memory");
        if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK)
                result = error_set(error, "must be an absolute URL, such as https://gateway.example/hooks");
        else
                result = check_parts(url, error);
        curl_url_cleanup(url);
        return result;
}

static const struct member_rule members[] = {
    {"url", JSON_STRING, 1},
    {"events", JSON_ARRAY, 1},
    {"secret", JSON_STRING, 1},
};

static int
is_repeated(const struct json_value *events, const struct json_value *event)
{
        for (const struct json_value *each = events->first; each != event; each = each->next) {
                if (each->type == JSON_STRING && strcmp(each->text, event->text) == 0)
                        return 1;
        }
        return 0;
}

static void
check_event(const struct json_value *events, const struct json_value *event, size_t index,
            struct violations *violations)
{
        const char *suggestion;
        char field[32];

        (void)snprintf(field, sizeof(field), "events[%zu]", index);
        if (event->type != JSON_STRING) {
                violations_add(violations, field, "must be a string");
        } else if (!events_filter_is_known(event->text)) {
                suggestion = events_filter_suggest(event->text);
                violations_add(violations, field, "is not a kind of event%s%s%s",
                               suggestion == NULL ? "" : "; did you mean ",
                               suggestion == NULL ? "" : suggestion, suggestion == NULL ? "" : "?");
        } else if (strcmp(event->text, "*") == 0 && events->n > 1) {
                violations_add(violations, field, "* means every event and must be the only entry");
        } else if (is_repeated(events, event)) {
                violations_add(violations, field, "is a duplicate");
        }
}

static void
check_events(const struct json_value *events, struct violations *violations)
{
        size_t index = 0;

        if (events->n == 0)
                violations_add(violations, "events", "must contain a kind of event, or *");
        if (events->n > EVENTS_MAX) {
                violations_add(violations, "events", "must have at most %d entries", EVENTS_MAX);
                return;
        }
        for (const struct json_value *event = events->first; event != NULL; event = event->next)
                check_event(events, event, index++, violations);
}

static void
check(const struct json_value *payload, struct violations *violations)
{
        const struct json_value *events = json_tree_get(payload, "events");
        const char *url = json_tree_text(payload, "url"), *secret = json_tree_text(payload, "secret");
        struct error error;

        violations_check_members(violations, "", payload, members, ARRAY_LEN(members));
        if (url != NULL && webhooks_check_url(url, &error) != 0)
                violations_add(violations, "url", "%s", error.text);
        if (events != NULL && events->type == JSON_ARRAY)
                check_events(events, violations);
        if (secret != NULL && (strlen(secret) < SIGNATURE_SECRET_MIN || strlen(secret) > SECRETS_MAX))
                violations_add(violations, "secret", "must have %d to %d bytes", SIGNATURE_SECRET_MIN,
                               SECRETS_MAX);
}

struct webhook *
webhooks_new(const struct json_value *payload, const char *owner, struct violations *violations)
{
        const struct json_value *events = json_tree_get(payload, "events");
        struct webhook *new;

        check(payload, violations);
        if (violations->n > 0)
                return NULL;
        new = mem_alloc(sizeof(*new));
        (void)bytes_random_uuid(new->id);
        new->url = mem_strdup(json_tree_text(payload, "url"));
        new->secret = mem_strdup(json_tree_text(payload, "secret"));
        new->owner = owner == NULL ? NULL : mem_strdup(owner);
        new->created_ms = clock_now_ms();
        new->events = mem_alloc(events->n * sizeof(*new->events));
        for (const struct json_value *event = events->first; event != NULL; event = event->next)
                new->events[new->n_events++] = mem_strdup(event->text);
        TAILQ_INIT(&new->waiting);
        new->key = signature_key_new(new->secret, strlen(new->secret));
        if (new->key != NULL)
                return new;
        violations_add(violations, "secret", "cannot be used");
        webhooks_free(new);
        return NULL;
}

void
webhooks_free(struct webhook *webhook)
{
        if (webhook == NULL)
                return;
        for (size_t i = 0; i < webhook->n_events; i++)
                free(webhook->events[i]);
        free(webhook->events);
        free(webhook->url);
        secrets_free(webhook->secret, strlen(webhook->secret));
        signature_key_free(webhook->key);
        free(webhook->owner);
        free(webhook);
}

int
webhooks_wants(const struct webhook *webhook, const char *entity, const char *kind)
{
        if (webhook->owner != NULL && strcmp(webhook->owner, entity) != 0)
                return 0;
        for (size_t i = 0; i < webhook->n_events; i++) {
                if (events_filter_matches(webhook->events[i], kind))
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

size_t
webhooks_count(const struct webhooks *webhooks)
{
        const struct webhook *each;
        size_t n = 0;

        TAILQ_FOREACH(each, webhooks, entry)
        n++;
        return n;
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

/* The API calls. Responses never contain the secret. */

static void
write_members(struct json_writer *json, const struct webhook *webhook)
{
        char created[CLOCK_RFC3339_SIZE];

        json_member(json, "id", webhook->id);
        json_member(json, "url", webhook->url);
        json_open_array(json, "events");
        for (size_t i = 0; i < webhook->n_events; i++)
                json_member(json, NULL, webhook->events[i]);
        json_close_array(json);
        json_member(json, "createdAt", clock_format_ms(webhook->created_ms, created));
}

static int
may_access(const struct api_call *call, const struct webhook *webhook)
{
        return call->key->entity == NULL ||
               (webhook->owner != NULL && keys_allow_entity(call->key, webhook->owner));
}

void
webhooks_list(const struct api_call *call)
{
        const struct webhook *each;
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        json_open_array(json, "webhooks");
        TAILQ_FOREACH(each, &call->sandbox->webhooks, entry)
        {
                if (!may_access(call, each))
                        continue;
                json_open_object(json, NULL);
                write_members(json, each);
                json_close_object(json);
        }
        json_close_array(json);
        json_close_object(json);
        api_reply(call, 200, json);
}

static void
reply_created(const struct api_call *call, const struct webhook *webhook)
{
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        write_members(json, webhook);
        json_close_object(json);
        api_reply(call, 201, json);
}

void
webhooks_register(const struct api_call *call)
{
        struct webhooks *all = &call->sandbox->webhooks;
        struct json_value *payload = api_read_body(call);
        struct violations violations = {0};
        struct webhook *new;

        if (payload == NULL)
                return;
        new = webhooks_new(payload, call->key->entity, &violations);
        json_tree_free(payload);
        if (new == NULL) {
                api_refuse_violations(call, &violations);
                return;
        }
        if (webhooks_count(all) == WEBHOOKS_MAX) {
                webhooks_free(new);
                api_refuse(call, 409, NULL, "there are %d webhooks already, the maximum; remove one",
                           WEBHOOKS_MAX);
                return;
        }
        TAILQ_INSERT_TAIL(all, new, entry);
        if (sandbox_save(call->sandbox) != 0) {
                TAILQ_REMOVE(all, new, entry);
                webhooks_free(new);
                api_refuse(call, 500, NULL, "the webhook could not be saved");
                return;
        }
        log_info("webhook registered id=%s url=%s", new->id, new->url);
        reply_created(call, new);
}

void
webhooks_remove(const struct api_call *call)
{
        struct sandbox *sandbox = call->sandbox;
        struct webhooks *all = &sandbox->webhooks;
        struct webhook *found = webhooks_find(all, call->id);

        if (found == NULL) {
                api_refuse(call, 404, NULL, "there is no webhook with this id");
                return;
        }
        if (!may_access(call, found)) {
                api_refuse(call, 403, NULL, "the key is for another entity");
                return;
        }
        found->is_removed = 1;
        if (sandbox_save(sandbox) != 0) {
                found->is_removed = 0;
                api_refuse(call, 500, NULL,
                           "the state file could not be written; the webhook was not removed");
                return;
        }
        log_info("webhook removed id=%s", found->id);
        delivery_scheduler_cancel(sandbox->scheduler, found);
        TAILQ_REMOVE(all, found, entry);
        webhooks_free(found);
        api_reply(call, 204, NULL);
}
