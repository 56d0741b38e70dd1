/* What the outside is told about an invoice. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "sandbox/events.h"
#include "sandbox/invoices.h"
#include "sandbox/sandbox.h"

/* The members of the payload that are the invoice's own, and are not instructions for the sandbox. */
static void
write_payload(yajl_gen json, const struct json_value *payload)
{
        for (const struct json_value *member = payload->first; member != NULL; member = member->next) {
                if (strcmp(member->name, "outcome") == 0 || strcmp(member->name, "entity") == 0)
                        continue;
                json_text(json, member->name);
                json_tree_write(json, member);
        }
}

static void
write_rejection(yajl_gen json, const struct invoice *invoice, const char *country)
{
        char rejected[CLOCK_RFC3339_SIZE];

        json_member(json, "rejectedAt", clock_format_ms(invoice->decided_ms, rejected));
        json_text(json, "error");
        (void)yajl_gen_map_open(json);
        json_member(json, "source", outcome_authority(country));
        json_member(json, "code", "SANDBOX-1");
        json_member(json, "message", "The invoice was rejected");
        json_member(json, "detail", "The invoice asked for it: its outcome is rejected.");
        (void)yajl_gen_map_close(json);
}

static void
write_status(yajl_gen json, const struct invoice *invoice, const struct json_value *payload)
{
        const struct outcome *outcome = invoice_outcome(invoice);

        json_member(json, "clearanceStatus", outcome->status);
        json_flag(json, "terminal", outcome->terminal);
        if (strcmp(outcome->status, "REJECTED") == 0)
                write_rejection(json, invoice, json_tree_text(payload, "country"));
}

void
invoice_write_status(yajl_gen json, const struct invoice *invoice)
{
        struct error error;
        struct json_value *payload = json_tree_parse(invoice->payload, invoice->len, &error);

        write_status(json, invoice, payload);
        json_tree_free(payload);
}

void
invoice_publish(const struct invoice *invoice, const char *kind)
{
        struct error error;
        struct json_value *payload = json_tree_parse(invoice->payload, invoice->len, &error);
        struct courier_event event = {.entity = invoice->entity, .kind = kind};
        char now[CLOCK_RFC3339_SIZE];
        yajl_gen json;
        char *body;

        if (payload == NULL)
                return; /* cannot be: it was read when it came */
        json = json_new(0);
        (void)yajl_gen_map_open(json);
        json_member(json, "event", kind);
        json_member(json, "createdAt", clock_format_ms(clock_now_ms(), now));
        json_member(json, "invoiceId", invoice->id);
        json_member(json, "entity", invoice->entity);
        if (invoice->idempotency_key != NULL)
                json_member(json, "idempotencyKey", invoice->idempotency_key);
        write_payload(json, payload);
        write_status(json, invoice, payload);
        (void)yajl_gen_map_close(json);
        json_tree_free(payload);
        body = json_take(json, &event.len);
        event.body = body;
        events_publish(invoice->sandbox, &event, NULL);
        free(body);
}
