#include "sandbox/api_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "model/sample.h"
#include "sandbox/sandbox.h"

/* Webhooks. */

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
api_calls_list_webhooks(const struct api_call *call)
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

/* A webhook gets the events of the key's entity, or of all entities. */
static void
register_webhook(const struct api_call *call, const char *entity, const struct json_value *payload)
{
        struct sandbox *sandbox = call->sandbox;
        struct webhook *new = webhooks_new(payload, call->key->entity);
        const struct delivery_target target = {.url = new->url, .webhook_id = new->id, .key = new->key};
        char quoted[LOG_QUOTED_SIZE];

        (void)entity;
        new->queue = delivery_queue_new(&sandbox->deliveries, &target);
        TAILQ_INSERT_TAIL(&sandbox->webhooks, new, entry);
        log_info("webhook registered id=%s url=%s", new->id, log_quote(new->url, quoted));
        reply_created(call, new);
}

void
api_calls_register_webhook(const struct api_call *call)
{
        api_process(call, webhooks_check, register_webhook);
}

void
api_calls_remove_webhook(const struct api_call *call)
{
        struct webhooks *all = &call->sandbox->webhooks;
        struct webhook *found = webhooks_find(all, call->id);

        if (found == NULL) {
                api_refuse(call, 404, "there is no webhook with this id");
                return;
        }
        if (!may_access(call, found)) {
                api_refuse(call, 403, "the key is for another entity");
                return;
        }
        log_info("webhook removed id=%s", found->id);
        TAILQ_REMOVE(all, found, entry);
        webhooks_free(found);
        api_reply(call, 204, NULL);
}

/* Invoices. */

static void
reply_submitted(const struct api_call *call, const struct invoice *invoice, int duplicate)
{
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        json_member(json, "invoiceId", invoice->id);
        json_flag(json, "duplicate", duplicate);
        json_member(json, "clearanceStatus", invoice->decision->status);
        json_close_object(json);
        api_reply(call, 200, json);
}

/* Answer a submission whose idempotency key was used before. */
static void
submit_again(const struct api_call *call, const struct invoice *earlier)
{
        size_t len;
        const char *body = http_request_body(call->request, &len);

        if (len != earlier->len || memcmp(body, earlier->payload, len) != 0) {
                api_refuse(call, 409,
                           "this x-idempotency-key was used with a different payload; use a new key");
                return;
        }
        log_info("invoice submitted again invoice-id=%s", earlier->id);
        sandbox_publish_invoice(call->sandbox, earlier, "invoice.duplicate");
        reply_submitted(call, earlier, 1);
}

/* Answer a submission without violations, for an entity that the key may act for. */
static void
submit(const struct api_call *call, const char *entity, const struct json_value *payload)
{
        struct invoice_facts facts = {.entity = entity,
                                      .idempotency_key = call->headers.idempotency_key,
                                      .outcome = json_tree_text(payload, "outcome")};
        const struct invoice *invoice = NULL;
        struct error error;

        if (call->headers.idempotency_key != NULL)
                invoice =
                    invoices_find_by_key(&call->sandbox->invoices, entity, call->headers.idempotency_key);
        if (invoice != NULL) {
                submit_again(call, invoice);
                return;
        }
        if (invoice_rules_check_country(payload, &error) != 0) {
                api_refuse(call, 422, error.text);
                return;
        }
        facts.payload = http_request_body(call->request, &facts.len);
        invoice = invoices_add(&call->sandbox->invoices, &facts);
        log_info("invoice submitted invoice-id=%s outcome=%s", invoice->id, invoice->outcome->name);
        reply_submitted(call, invoice, 0);
}

void
api_calls_submit_invoice(const struct api_call *call)
{
        api_process(call, invoice_rules_check, submit);
}

static void
reply_status(const struct api_call *call, const struct invoice *invoice)
{
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        json_member(json, "invoiceId", invoice->id);
        json_member(json, "entity", invoice->entity);
        invoices_write_status(json, invoice);
        json_close_object(json);
        api_reply(call, 200, json);
}

void
api_calls_poll_invoice(const struct api_call *call)
{
        const struct invoice *invoice = invoices_find(&call->sandbox->invoices, call->id);

        if (invoice == NULL)
                api_refuse(call, 404, "there is no invoice with this id");
        else if (!keys_allow_entity(call->key, invoice->entity))
                api_refuse(call, 403, "the key is for another entity");
        else
                reply_status(call, invoice);
}

/* Events on demand. */

static const struct member_rule fire_members[] = {
    {"kind", JSON_STRING, 1},
    {"data", JSON_OBJECT, 0},
    {"entity", JSON_STRING, 0},
};

/* Make a body of the kind, the time, and the members of data. Without data, make a sample body. */
static char *
compose_event(const char *kind, const struct json_value *data)
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
        for (const struct json_value *member = data->first; member != NULL; member = member->next)
                json_tree_write(json, member);
        json_close_object(json);
        return json_take(json, &len);
}

static void
check_event(const struct json_value *payload, struct violations *violations)
{
        violations_check_members(violations, "", payload, fire_members, ARRAY_LEN(fire_members));
        if (json_tree_get(json_tree_get(payload, "data"), "event") != NULL)
                violations_add(violations, "data.event", "is set from kind; leave it out");
}

static void
publish(const struct api_call *call, const char *entity, const struct json_value *payload)
{
        const char *kind = json_tree_text(payload, "kind");
        char *body = compose_event(kind, json_tree_get(payload, "data"));
        const struct outgoing_event event = {entity, kind, body, strlen(body)};
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        json_open_array(json, "deliveries");
        sandbox_publish(call->sandbox, &event, json);
        json_close_array(json);
        json_close_object(json);
        api_reply(call, 202, json);
        free(body);
}

void
api_calls_fire_event(const struct api_call *call)
{
        api_process(call, check_event, publish);
}
