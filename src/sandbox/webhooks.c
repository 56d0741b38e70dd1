#include "sandbox/webhooks.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "sandbox/sandbox.h"

/* Of a subscription everything is shown but its secret. */
static void
write_members(yajl_gen json, const struct subscription *subscription)
{
        char created[CLOCK_RFC3339_SIZE];

        json_member(json, "id", subscription->id);
        json_member(json, "url", subscription->url);
        json_text(json, "events");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < subscription->n_events; i++)
                json_text(json, subscription->events[i]);
        (void)yajl_gen_array_close(json);
        json_member(json, "createdAt", clock_format_ms(subscription->created_ms, created));
}

static int
may_touch(const struct call *call, const struct subscription *subscription)
{
        return call->key->entity == NULL ||
               (subscription->owner != NULL && key_covers(call->key, subscription->owner));
}

void
webhooks_list(const struct call *call)
{
        const struct subscription *each;
        yajl_gen json = json_new(0);

        (void)yajl_gen_map_open(json);
        json_flag(json, "ok", 1);
        json_text(json, "webhooks");
        (void)yajl_gen_array_open(json);
        TAILQ_FOREACH(each, &call->sandbox->subscriptions, entry)
        {
                if (!may_touch(call, each))
                        continue;
                (void)yajl_gen_map_open(json);
                write_members(json, each);
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
        (void)yajl_gen_map_close(json);
        call_reply(call, 200, json);
}

static void
reply_created(const struct call *call, const struct subscription *subscription)
{
        yajl_gen json = json_new(0);

        (void)yajl_gen_map_open(json);
        json_flag(json, "ok", 1);
        write_members(json, subscription);
        (void)yajl_gen_map_close(json);
        call_reply(call, 201, json);
}

void
webhooks_add(const struct call *call)
{
        struct subscriptions *all = &call->sandbox->subscriptions;
        struct json_value *payload = call_body(call);
        struct violations violations = {0};
        struct subscription *new;

        if (payload == NULL)
                return;
        new = subscription_new(payload, call->key->entity, &violations);
        json_tree_free(payload);
        if (new == NULL) {
                call_refuse_payload(call, &violations);
                return;
        }
        if (subscriptions_count(all) == SUBSCRIPTIONS_MAX) {
                subscription_free(new);
                call_refuse(call, 409, NULL, "there are %d webhooks, and no more can be; remove one",
                            SUBSCRIPTIONS_MAX);
                return;
        }
        TAILQ_INSERT_TAIL(all, new, entry);
        if (sandbox_save(call->sandbox) != 0) {
                TAILQ_REMOVE(all, new, entry);
                subscription_free(new);
                call_refuse(call, 500, NULL, "the webhook could not be kept");
                return;
        }
        log_info("webhook registered id=%s url=%s", new->id, new->url);
        reply_created(call, new);
}

void
webhooks_remove(const struct call *call)
{
        struct sandbox *sandbox = call->sandbox;
        struct subscriptions *all = &sandbox->subscriptions;
        struct subscription *found = subscriptions_find(all, call->id);

        if (found == NULL) {
                call_refuse(call, 404, NULL, "there is no webhook with this id");
                return;
        }
        if (!may_touch(call, found)) {
                call_refuse(call, 403, NULL, "the key is for another entity");
                return;
        }
        found->is_removed = 1;
        if (sandbox_save(sandbox) != 0) {
                found->is_removed = 0;
                call_refuse(call, 500, NULL, "the webhook is kept, for its removal could not be noted");
                return;
        }
        log_info("webhook removed id=%s", found->id);
        courier_forget(sandbox->courier, found);
        TAILQ_REMOVE(all, found, entry);
        subscription_free(found);
        call_reply(call, 204, NULL);
}
