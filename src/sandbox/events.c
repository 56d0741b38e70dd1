#include "sandbox/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "sandbox/sandbox.h"

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

/* Write the members of the payload, except instructions to the sandbox. */
static void
write_payload(struct json_writer *json, const struct json_value *payload)
{
        for (const struct json_value *member = payload->first; member != NULL; member = member->next) {
                if (strcmp(member->name, "outcome") == 0 || strcmp(member->name, "entity") == 0)
                        continue;
                json_tree_write(json, member);
        }
}

void
events_publish_invoice(struct sandbox *sandbox, const struct invoice *invoice, const char *kind)
{
        struct error error;
        struct json_value *payload = json_tree_parse(invoice->payload, invoice->len, &error);
        struct outgoing_event event = {.entity = invoice->entity, .kind = kind};
        char now[CLOCK_RFC3339_SIZE];
        struct json_writer *json;
        char *body;

        if (payload == NULL)
                return; /* impossible: it was parsed on submission */
        json = json_new(0);
        json_open_object(json, NULL);
        json_member(json, "event", kind);
        json_member(json, "createdAt", clock_format_ms(clock_now_ms(), now));
        json_member(json, "invoiceId", invoice->id);
        json_member(json, "entity", invoice->entity);
        if (invoice->idempotency_key != NULL)
                json_member(json, "idempotencyKey", invoice->idempotency_key);
        write_payload(json, payload);
        invoices_write_status(json, invoice, payload);
        json_close_object(json);
        json_tree_free(payload);
        body = json_take(json, &event.len);
        event.body = body;
        events_publish(sandbox, &event, NULL);
        free(body);
}
