#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "sandbox/api.h"
#include "sandbox/api_routes.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"
#include "sandbox/state.h"

#define IDEMPOTENCY_KEY_MAX 255

static void
check(const struct api_call *call, const struct json_value *payload, struct violations *violations)
{
        const char *key = call->idempotency_key;
        size_t len = key == NULL ? 1 : strlen(key);
        int bad = len == 0 || len > IDEMPOTENCY_KEY_MAX;

        invoice_rules_check(payload, violations);
        for (const char *c = key; c != NULL && *c != '\0'; c++)
                bad |= *c < ' ' || *c > '~';
        if (bad)
                violations_add(violations, "x-idempotency-key",
                               "must have 1 to %d printable ASCII characters", IDEMPOTENCY_KEY_MAX);
}

static void
reply_submitted(const struct api_call *call, const struct invoice *invoice, int duplicate)
{
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        json_member(json, "invoiceId", invoice->id);
        json_flag(json, "duplicate", duplicate);
        json_member(json, "clearanceStatus", invoices_decision(invoice)->status);
        json_close_object(json);
        api_reply(call, 200, json);
}

/* Answer a submission whose idempotency key was used before. */
static void
submit_again(const struct api_call *call, const struct invoice *earlier)
{
        size_t len;
        const char *body = http_request_body(call->request, &len);

        if (!invoices_has_payload(earlier, body, len)) {
                api_refuse(call, 409, NULL,
                           "this x-idempotency-key was used with a different payload; use a new key");
                return;
        }
        log_info("invoice submitted again invoice-id=%s", earlier->id);
        events_publish_invoice(call->sandbox, earlier, "invoice.duplicate");
        reply_submitted(call, earlier, 1);
}

/* Answer a submission without violations, for an entity that the key may act for. */
static void
submit(const struct api_call *call, const char *entity, const struct json_value *payload)
{
        struct invoice_facts facts = {.entity = entity,
                                      .idempotency_key = call->idempotency_key,
                                      .outcome = json_tree_text(payload, "outcome"),
                                      .submitted_ms = clock_now_ms()};
        const struct invoice *invoice = NULL;
        struct error error;

        if (call->idempotency_key != NULL)
                invoice = invoices_find_by_key(&call->sandbox->invoices, entity, call->idempotency_key);
        if (invoice != NULL) {
                submit_again(call, invoice);
                return;
        }
        if (invoice_rules_check_country(payload, &error) != 0) {
                api_refuse(call, 422, NULL, "%s", error.text);
                return;
        }
        facts.payload = http_request_body(call->request, &facts.len);
        invoice = invoices_add(&call->sandbox->invoices, &facts);
        if (invoice == NULL) {
                api_refuse(call, 500, NULL, "out of memory; the invoice was not accepted");
                return;
        }
        log_info("invoice submitted invoice-id=%s outcome=%s", invoice->id, invoice->decision->name);
        state_save_soon(call->sandbox);
        reply_submitted(call, invoice, 0);
}

void
api_invoices_submit(const struct api_call *call)
{
        api_process(call, check, submit);
}

static void
reply_status(const struct api_call *call, const struct invoice *invoice)
{
        struct error error;
        struct json_value *payload = json_tree_parse(invoice->payload, invoice->len, &error);
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        json_member(json, "invoiceId", invoice->id);
        json_member(json, "entity", invoice->entity);
        invoices_write_status(json, invoice, payload);
        json_close_object(json);
        json_tree_free(payload);
        api_reply(call, 200, json);
}

void
api_invoices_poll(const struct api_call *call)
{
        const struct invoice *invoice = invoices_find(&call->sandbox->invoices, call->id);

        if (invoice == NULL)
                api_refuse(call, 404, NULL, "there is no invoice with this id");
        else if (!keys_allow_entity(call->key, invoice->entity))
                api_refuse(call, 403, NULL, "the key is for another entity");
        else
                reply_status(call, invoice);
}
