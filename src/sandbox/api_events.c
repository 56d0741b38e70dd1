#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/sample.h"
#include "sandbox/api.h"
#include "sandbox/api_routes.h"
#include "sandbox/event_filter.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"

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
        for (const struct json_value *member = data->first; member != NULL; member = member->next) {
                json_tree_write(json, member);
        }
        json_close_object(json);
        return json_take(json, &len);
}

static void
check(const struct api_call *call, const struct json_value *payload, struct violations *violations)
{
        const char *kind = json_tree_text(payload, "kind"), *entity = json_tree_text(payload, "entity");

        (void)call;
        violations_check_members(violations, "", payload, fire_members, ARRAY_LEN(fire_members));
        if (kind != NULL && !event_filter_is_kind(kind))
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
api_events_fire(const struct api_call *call)
{
        api_process(call, check, publish);
}
