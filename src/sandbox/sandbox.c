#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

void
sandbox_publish(struct sandbox *sandbox, const struct outgoing_event *event, struct json_writer *deliveries)
{
        struct webhook *each;

        TAILQ_FOREACH(each, &sandbox->webhooks, entry)
        {
                const char *id;

                if (!webhooks_wants(each, event->entity, event->kind))
                        continue;
                id = delivery_queue_add(each->queue, event);
                if (deliveries == NULL)
                        continue;
                json_open_object(deliveries, NULL);
                json_member(deliveries, "webhookId", each->id);
                json_member(deliveries, "deliveryId", id);
                json_close_object(deliveries);
        }
}

/* Write the members of the payload, except instructions to the sandbox and members that the event has. */
static void
write_payload(struct json_writer *json, const struct json_value *payload)
{
        static const char *const others[] = {"outcome",    "entity",         "event",    "createdAt",
                                             "invoiceId",  "idempotencyKey", "terminal", "clearanceStatus",
                                             "rejectedAt", "error"};

        for (const struct json_value *member = payload->first; member != NULL; member = member->next) {
                size_t i = 0;

                while (i < ARRAY_LEN(others) && strcmp(member->name, others[i]) != 0)
                        i++;
                if (i == ARRAY_LEN(others))
                        json_tree_write(json, member);
        }
}

void
sandbox_publish_invoice(struct sandbox *sandbox, const struct invoice *invoice, const char *kind)
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
        invoices_write_status(json, invoice);
        json_close_object(json);
        json_tree_free(payload);
        body = json_take(json, &event.len);
        event.body = body;
        sandbox_publish(sandbox, &event, NULL);
        free(body);
}
