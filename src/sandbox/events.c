#include "sandbox/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/sample.h"
#include "sandbox/event_filter.h"
#include "sandbox/sandbox.h"

static const struct member_rule members[] = {
    {"kind", JSON_STRING, 1},
    {"data", JSON_OBJECT, 0},
    {"entity", JSON_STRING, 0},
};

void
events_publish(struct sandbox *sandbox, const struct courier_event *event, yajl_gen deliveries)
{
        struct subscription *each;

        TAILQ_FOREACH(each, &sandbox->subscriptions, entry)
        {
                const char *id;

                if (!subscription_wants(each, event->entity, event->kind))
                        continue;
                id = courier_send(sandbox->courier, each, event);
                if (deliveries == NULL || id == NULL)
                        continue;
                (void)yajl_gen_map_open(deliveries);
                json_member(deliveries, "webhookId", each->id);
                json_member(deliveries, "deliveryId", id);
                (void)yajl_gen_map_close(deliveries);
        }
}

/* The kind, the time, and the members of data; without data what a sample has. */
static char *
compose(const char *kind, const struct json_value *data)
{
        char now[CLOCK_RFC3339_SIZE];
        yajl_gen json;
        size_t len;

        if (data == NULL || data->type == JSON_NULL)
                return sample_body(kind);
        json = json_new(0);
        (void)yajl_gen_map_open(json);
        json_member(json, "event", kind);
        if (json_tree_get(data, "createdAt") == NULL)
                json_member(json, "createdAt", clock_format_ms(clock_now_ms(), now));
        for (const struct json_value *member = data->first; member != NULL; member = member->next) {
                json_text(json, member->name);
                json_tree_write(json, member);
        }
        (void)yajl_gen_map_close(json);
        return json_take(json, &len);
}

static void
check(const struct json_value *payload, struct violations *violations)
{
        const char *kind = json_tree_text(payload, "kind"), *entity = json_tree_text(payload, "entity");

        violations_check_members(violations, "", payload, members, ARRAY_LEN(members));
        if (kind != NULL && !event_is_kind(kind))
                violations_add(violations, "kind", "must have 1 to 128 letters, digits and . _ -");
        if (entity != NULL && !entity_is_name(entity))
                violations_add(violations, "entity", "must have 1 to %d letters, digits and . _ -",
                               ENTITY_MAX);
        if (json_tree_get(json_tree_get(payload, "data"), "event") != NULL)
                violations_add(violations, "data.event", "is what kind says; leave it out");
}

static void
publish(const struct call *call, const char *entity, const struct json_value *payload)
{
        const char *kind = json_tree_text(payload, "kind");
        char *body = compose(kind, json_tree_get(payload, "data"));
        const struct courier_event event = {entity, kind, body, strlen(body)};
        yajl_gen json = json_new(0);

        (void)yajl_gen_map_open(json);
        json_flag(json, "ok", 1);
        json_text(json, "deliveries");
        (void)yajl_gen_array_open(json);
        events_publish(call->sandbox, &event, json);
        (void)yajl_gen_array_close(json);
        (void)yajl_gen_map_close(json);
        call_reply(call, 202, json);
        free(body);
}

void
events_fire(const struct call *call)
{
        struct json_value *payload = call_body(call);
        struct violations violations = {0};
        const char *entity;

        if (payload == NULL)
                return;
        check(payload, &violations);
        entity = call_entity(call, json_tree_text(payload, "entity"));
        if (violations.n > 0)
                call_refuse_payload(call, &violations);
        else if (!key_covers(call->key, entity))
                call_refuse(call, 403, NULL, "the key is for another entity");
        else
                publish(call, entity, payload);
        json_tree_free(payload);
}
