#include "sandbox/invoice_calls.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "sandbox/invoice_rules.h"
#include "sandbox/invoices.h"
#include "sandbox/sandbox.h"

#define IDEMPOTENCY_KEY_MAX 255

static void
check_idempotency_key(const char *key, struct violations *violations)
{
        size_t len = key == NULL ? 1 : strlen(key);
        int bad = len == 0 || len > IDEMPOTENCY_KEY_MAX;

        for (const char *c = key; c != NULL && *c != '\0'; c++)
                bad |= *c < ' ' || *c > '~';
        if (bad)
                violations_add(violations, "x-idempotency-key",
                               "must have 1 to %d printable ASCII characters", IDEMPOTENCY_KEY_MAX);
}

static void
reply_submitted(const struct call *call, const struct invoice *invoice, int duplicate)
{
        yajl_gen json = json_new(0);

        (void)yajl_gen_map_open(json);
        json_flag(json, "ok", 1);
        json_member(json, "invoiceId", invoice->id);
        json_flag(json, "duplicate", duplicate);
        json_member(json, "clearanceStatus", invoice_outcome(invoice)->status);
        (void)yajl_gen_map_close(json);
        call_reply(call, 200, json);
}

static void
repeat(const struct call *call, const struct invoice *earlier)
{
        size_t len;
        const char *body = http_request_body(call->request, &len);

        if (!invoice_has_payload(earlier, body, len)) {
                call_refuse(call, 409, NULL,
                            "another payload was submitted with this x-idempotency-key; make a new key");
                return;
        }
        log_info("submitted again invoice-id=%s", earlier->id);
        invoice_publish(earlier, "invoice.duplicate");
        reply_submitted(call, earlier, 1);
}

/* A submission without violations, for an entity that the key covers. */
static void
submit(const struct call *call, const char *entity, const struct json_value *payload)
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
                repeat(call, invoice);
                return;
        }
        if (invoice_check_country_rules(payload, &error) != 0) {
                call_refuse(call, 422, NULL, "%s", error.text);
                return;
        }
        facts.payload = http_request_body(call->request, &facts.len);
        invoice = invoices_add(call->sandbox, &facts);
        if (invoice == NULL) {
                call_refuse(call, 500, NULL, "the invoice could not be kept");
                return;
        }
        log_info("submitted invoice-id=%s outcome=%s", invoice->id, invoice->outcome->name);
        sandbox_save_soon(call->sandbox);
        reply_submitted(call, invoice, 0);
}

void
invoices_submit(const struct call *call)
{
        struct json_value *payload = call_body(call);
        struct violations violations = {0};
        const char *entity;

        if (payload == NULL)
                return;
        invoice_check(payload, &violations);
        check_idempotency_key(call->idempotency_key, &violations);
        entity = call_entity(call, json_tree_text(payload, "entity"));
        if (violations.n > 0)
                call_refuse_payload(call, &violations);
        else if (!key_covers(call->key, entity))
                call_refuse(call, 403, NULL, "the key is for another entity");
        else
                submit(call, entity, payload);
        json_tree_free(payload);
}

void
invoices_poll(const struct call *call)
{
        const struct invoice *invoice = invoices_find(&call->sandbox->invoices, call->id);
        yajl_gen json;

        if (invoice == NULL) {
                call_refuse(call, 404, NULL, "there is no invoice with this id");
                return;
        }
        if (!key_covers(call->key, invoice->entity)) {
                call_refuse(call, 403, NULL, "the key is for another entity");
                return;
        }
        json = json_new(0);
        (void)yajl_gen_map_open(json);
        json_flag(json, "ok", 1);
        json_member(json, "invoiceId", invoice->id);
        json_member(json, "entity", invoice->entity);
        invoice_write_status(json, invoice);
        (void)yajl_gen_map_close(json);
        call_reply(call, 200, json);
}
