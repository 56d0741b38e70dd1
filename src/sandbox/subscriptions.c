#include "sandbox/subscriptions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/secrets.h"
#include "sandbox/endpoint_url.h"
#include "sandbox/event_filter.h"

static const struct member_rule members[] = {
    {"url", JSON_STRING, 1},
    {"events", JSON_ARRAY, 1},
    {"secret", JSON_STRING, 1},
};

static int
is_there_before(const struct json_value *events, const struct json_value *event)
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
        } else if (!event_filter_is_known(event->text)) {
                suggestion = event_filter_suggest(event->text);
                violations_add(violations, field, "is no kind of event%s%s%s",
                               suggestion == NULL ? "" : "; did you mean ",
                               suggestion == NULL ? "" : suggestion, suggestion == NULL ? "" : "?");
        } else if (strcmp(event->text, "*") == 0 && events->n > 1) {
                violations_add(violations, field, "* means every event and stands alone");
        } else if (is_there_before(events, event)) {
                violations_add(violations, field, "is there twice");
        }
}

static void
check_events(const struct json_value *events, struct violations *violations)
{
        size_t index = 0;

        if (events->n == 0)
                violations_add(violations, "events", "must name a kind of event, or *");
        if (events->n > SUBSCRIPTIONS_MAX) {
                violations_add(violations, "events", "must have at most %d", SUBSCRIPTIONS_MAX);
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
        if (url != NULL && endpoint_url_check(url, &error) != 0)
                violations_add(violations, "url", "%s", error.text);
        if (events != NULL && events->type == JSON_ARRAY)
                check_events(events, violations);
        if (secret != NULL && (strlen(secret) < SIGNATURE_SECRET_MIN || strlen(secret) > SECRETS_MAX))
                violations_add(violations, "secret", "must have %d to %d bytes", SIGNATURE_SECRET_MIN,
                               SECRETS_MAX);
}

struct subscription *
subscription_new(const struct json_value *payload, const char *owner, struct violations *violations)
{
        const struct json_value *events = json_tree_get(payload, "events");
        struct subscription *new;

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
        subscription_free(new);
        return NULL;
}

void
subscription_free(struct subscription *subscription)
{
        if (subscription == NULL)
                return;
        for (size_t i = 0; i < subscription->n_events; i++)
                free(subscription->events[i]);
        free(subscription->events);
        free(subscription->url);
        secrets_free(subscription->secret, strlen(subscription->secret));
        signature_key_free(subscription->key);
        free(subscription->owner);
        free(subscription);
}

int
subscription_wants(const struct subscription *subscription, const char *entity, const char *kind)
{
        if (subscription->owner != NULL && strcmp(subscription->owner, entity) != 0)
                return 0;
        for (size_t i = 0; i < subscription->n_events; i++) {
                if (event_filter_matches(subscription->events[i], kind))
                        return 1;
        }
        return 0;
}

struct subscription *
subscriptions_find(const struct subscriptions *subscriptions, const char *id)
{
        struct subscription *each;

        TAILQ_FOREACH(each, subscriptions, entry)
        {
                if (strcmp(each->id, id) == 0)
                        return each;
        }
        return NULL;
}

size_t
subscriptions_count(const struct subscriptions *subscriptions)
{
        const struct subscription *each;
        size_t n = 0;

        TAILQ_FOREACH(each, subscriptions, entry)
        n++;
        return n;
}

void
subscriptions_clear(struct subscriptions *subscriptions)
{
        struct subscription *each;

        while ((each = TAILQ_FIRST(subscriptions)) != NULL) {
                TAILQ_REMOVE(subscriptions, each, entry);
                subscription_free(each);
        }
}
