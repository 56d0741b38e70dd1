#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "sandbox/api.h"
#include "sandbox/api_routes.h"
#include "sandbox/sandbox.h"
#include "sandbox/state.h"

/* Without the secret. */
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
api_webhooks_list(const struct api_call *call)
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
api_webhooks_register(const struct api_call *call)
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
        if (state_save(call->sandbox) != 0) {
                TAILQ_REMOVE(all, new, entry);
                webhooks_free(new);
                api_refuse(call, 500, NULL, "the webhook could not be saved");
                return;
        }
        log_info("webhook registered id=%s url=%s", new->id, new->url);
        reply_created(call, new);
}

void
api_webhooks_remove(const struct api_call *call)
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
        if (state_save(sandbox) != 0) {
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
