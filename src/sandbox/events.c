#include "sandbox/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "model/sample.h"
#include "sandbox/sandbox.h"

#define KIND_MAX 128

static const char every_kind[] = "*";
static const char family[] = "reporting_batch.";
static const char whole_family[] = "reporting_batch.*";
static const char kind_characters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-";

static const char *const known_filters[] = {
    every_kind,          whole_family,      "invoice.accepted", "invoice.rejected",  "invoice.received",
    "invoice.duplicate", "invoice.pending", "invoice.amended",  "invoice.cancelled", "held_unmapped_decision",
};

static int
is_in_family(const char *kind)
{
        return strncmp(kind, family, sizeof(family) - 1) == 0 && kind[sizeof(family) - 1] != '\0';
}

int
events_is_kind(const char *text)
{
        size_t len = strspn(text, kind_characters);

        return len > 0 && len <= KIND_MAX && text[len] == '\0';
}

int
events_filter_is_known(const char *text)
{
        for (size_t i = 0; i < ARRAY_LEN(known_filters); i++) {
                if (strcmp(known_filters[i], text) == 0)
                        return 1;
        }
        return is_in_family(text) && events_is_kind(text);
}

const char *
events_filter_suggest(const char *text)
{
        return text_closest(text, known_filters, ARRAY_LEN(known_filters));
}

int
events_filter_matches(const char *filter, const char *kind)
{
        if (strcmp(filter, every_kind) == 0)
                return 1;
        if (strcmp(filter, whole_family) == 0)
                return is_in_family(kind);
        return strcmp(filter, kind) == 0;
}

void
events_publish(struct sandbox *sandbox, const struct outgoing_event *event, struct json_writer *deliveries)
{
        struct webhook *each;

        TAILQ_FOREACH(each, &sandbox->webhooks, entry)
        {
                const char *id;

                if (!webhooks_wants(each, event->entity, event->kind))
                        continue;
                id = delivery_scheduler_add(sandbox->scheduler, each, event);
                if (deliveries == NULL || id == NULL)
                        continue;
                json_open_object(deliveries, NULL);
                json_member(deliveries, "webhookId", each->id);
                json_member(deliveries, "deliveryId", id);
                json_close_object(deliveries);
        }
}

static const struct member_rule fire_members[] = {
    {"kind", JSON_STRING, 1},
    {"data", JSON_OBJECT, 0},
    {"entity", JSON_STRING, 0},
};

/* Make a body of the kind, the time, and the members of data. Without data, make a sample body. */
static char *
compose(const char *kind, const struct json_value *data)
{
        char now[CLOCK_RFC3339_SIZE];
        struct json_writer *json;
        size_t len;

        if (data == NULL || data->type == JSON_NULL)
                return sample_body(kind);
        json = json_new(0);
        json_open_object(json, NULL);
        json_member(json, "event", kind);
        if (json_tree_get(data, "createdAt") == NULL)
                json_member(json, "createdAt", clock_format_ms(clock_now_ms(), now));
        for (const struct json_value *member = data->first; member != NULL; member = member->next)
                json_tree_write(json, member);
        json_close_object(json);
        return json_take(json, &len);
}

static void
check(const struct json_value *payload, struct violations *violations)
{
        const char *kind = json_tree_text(payload, "kind"), *entity = json_tree_text(payload, "entity");

        violations_check_members(violations, "", payload, fire_members, ARRAY_LEN(fire_members));
        if (kind != NULL && !events_is_kind(kind))
                violations_add(violations, "kind", "must have 1 to 128 letters, digits and . _ -");
        if (entity != NULL && !keys_is_entity(entity))
                violations_add(violations, "entity", "must have 1 to %d letters, digits and . _ -",
                               KEYS_ENTITY_MAX);
        if (json_tree_get(json_tree_get(payload, "data"), "event") != NULL)
                violations_add(violations, "data.event", "is set from kind; leave it out");
}

static void
publish(const struct api_call *call, const char *entity, const struct json_value *payload)
{
        const char *kind = json_tree_text(payload, "kind");
        char *body = compose(kind, json_tree_get(payload, "data"));
        const struct outgoing_event event = {entity, kind, body, strlen(body)};
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        json_open_array(json, "deliveries");
        events_publish(call->sandbox, &event, json);
        json_close_array(json);
        json_close_object(json);
        api_reply(call, 202, json);
        free(body);
}

void
events_fire(const struct api_call *call)
{
        struct json_value *payload = api_read_body(call);
        struct violations violations = {0};
        const char *entity;

        if (payload == NULL)
                return;
        check(payload, &violations);
        entity = api_entity(call, json_tree_text(payload, "entity"));
        if (violations.n > 0)
                api_refuse_violations(call, &violations);
        else if (!keys_allow_entity(call->key, entity))
                api_refuse(call, 403, NULL, "the key is for another entity");
        else
                publish(call, entity, payload);
        json_tree_free(payload);
}
