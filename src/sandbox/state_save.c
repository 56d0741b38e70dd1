#include <stdlib.h>

#include "base/json.h"
#include "config/secrets.h"
#include "sandbox/file.h"
#include "sandbox/sandbox.h"
#include "sandbox/state.h"

static void
write_subscription(yajl_gen json, const struct subscription *subscription)
{
        (void)yajl_gen_map_open(json);
        json_member(json, "id", subscription->id);
        json_member(json, "owner", subscription->owner);
        json_number(json, "createdMs", subscription->created_ms);
        json_text(json, "request");
        (void)yajl_gen_map_open(json);
        json_member(json, "url", subscription->url);
        json_member(json, "secret", subscription->secret);
        json_text(json, "events");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < subscription->n_events; i++)
                json_text(json, subscription->events[i]);
        (void)yajl_gen_array_close(json);
        (void)yajl_gen_map_close(json);
        (void)yajl_gen_map_close(json);
}

static void
write_invoice(yajl_gen json, const struct invoice *invoice)
{
        (void)yajl_gen_map_open(json);
        json_member(json, "id", invoice->id);
        json_member(json, "entity", invoice->entity);
        json_member(json, "idempotencyKey", invoice->idempotency_key);
        json_number(json, "submittedMs", invoice->submitted_ms);
        json_number(json, "decidedMs", invoice->decided_ms);
        json_member(json, "payload", invoice->payload);
        (void)yajl_gen_map_close(json);
}

static void
write_delivery(const struct subscription *subscription, const struct courier_pending *pending, void *arg)
{
        yajl_gen json = arg;

        if (subscription->is_removed)
                return;
        (void)yajl_gen_map_open(json);
        json_member(json, "id", pending->id);
        json_member(json, "webhookId", subscription->id);
        json_member(json, "entity", pending->event.entity);
        json_member(json, "kind", pending->event.kind);
        json_number(json, "attempts", (int64_t)pending->n_attempts);
        json_number(json, "dueMs", pending->due_ms);
        json_number(json, "signedS", pending->signed_s);
        json_member(json, "body", pending->event.body);
        (void)yajl_gen_map_close(json);
}

int
state_save(const struct sandbox *sandbox, const char *path, struct error *error)
{
        const struct subscription *subscription;
        const struct invoice *invoice;
        yajl_gen json = json_new(0);
        size_t len;
        char *text;
        int result;

        (void)yajl_gen_map_open(json);
        json_number(json, "version", 1);
        json_text(json, "subscriptions");
        (void)yajl_gen_array_open(json);
        TAILQ_FOREACH(subscription, &sandbox->subscriptions, entry)
        {
                if (!subscription->is_removed)
                        write_subscription(json, subscription);
        }
        (void)yajl_gen_array_close(json);
        json_text(json, "invoices");
        (void)yajl_gen_array_open(json);
        TAILQ_FOREACH(invoice, &sandbox->invoices.list, entry)
        write_invoice(json, invoice);
        (void)yajl_gen_array_close(json);
        json_text(json, "deliveries");
        (void)yajl_gen_array_open(json);
        courier_each(sandbox->courier, write_delivery, json);
        (void)yajl_gen_array_close(json);
        (void)yajl_gen_map_close(json);
        text = json_take(json, &len);
        result = file_replace(path, text, len, error);
        secrets_free(text, len);
        return result;
}
