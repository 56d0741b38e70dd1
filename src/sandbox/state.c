#include "sandbox/state.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "config/secrets.h"
#include "sandbox/event_filter.h"
#include "sandbox/file.h"
#include "sandbox/invoice_rules.h"
#include "sandbox/sandbox.h"
#include "sandbox/transport.h"

/* Exceeds the maximum size of all invoices and deliveries, each character escaped. */
#define FILE_MAX_BYTES ((size_t)1 << 30)
#define SAVE_AFTER_US 250000
#define SAVE_RETRY_S 5

static void
write_webhook(struct json_writer *json, const struct webhook *webhook)
{
        json_open_object(json, NULL);
        json_member(json, "id", webhook->id);
        json_member(json, "owner", webhook->owner);
        json_number(json, "createdMs", webhook->created_ms);
        json_open_object(json, "request");
        json_member(json, "url", webhook->url);
        json_member(json, "secret", webhook->secret);
        json_open_array(json, "events");
        for (size_t i = 0; i < webhook->n_events; i++)
                json_member(json, NULL, webhook->events[i]);
        json_close_array(json);
        json_close_object(json);
        json_close_object(json);
}

static void
write_invoice(struct json_writer *json, const struct invoice *invoice)
{
        json_open_object(json, NULL);
        json_member(json, "id", invoice->id);
        json_member(json, "entity", invoice->entity);
        json_member(json, "idempotencyKey", invoice->idempotency_key);
        json_number(json, "submittedMs", invoice->submitted_ms);
        json_number(json, "decidedMs", invoice->decided_ms);
        json_member(json, "payload", invoice->payload);
        json_close_object(json);
}

static void
write_delivery(const struct webhook *webhook, const struct pending_delivery *pending, void *arg)
{
        struct json_writer *json = arg;

        if (webhook->is_removed)
                return;
        json_open_object(json, NULL);
        json_member(json, "id", pending->id);
        json_member(json, "webhookId", webhook->id);
        json_member(json, "entity", pending->event.entity);
        json_member(json, "kind", pending->event.kind);
        json_number(json, "attempts", (int64_t)pending->n_attempts);
        json_number(json, "dueMs", pending->due_ms);
        json_number(json, "signedS", pending->signed_s);
        json_member(json, "body", pending->event.body);
        json_close_object(json);
}

static void
write_webhooks(struct json_writer *json, const struct webhooks *webhooks)
{
        const struct webhook *webhook;

        json_open_array(json, "subscriptions"); /* the file's name for webhooks */
        TAILQ_FOREACH(webhook, webhooks, entry)
        {
                if (!webhook->is_removed)
                        write_webhook(json, webhook);
        }
        json_close_array(json);
}

static void
write_invoices(struct json_writer *json, const struct invoices *invoices)
{
        const struct invoice *invoice;

        json_open_array(json, "invoices");
        TAILQ_FOREACH(invoice, &invoices->list, entry)
        write_invoice(json, invoice);
        json_close_array(json);
}

int
state_write(const struct sandbox *sandbox, struct error *error)
{
        struct json_writer *json = json_new(0);
        size_t len;
        char *text;
        int result;

        json_open_object(json, NULL);
        json_number(json, "version", 1);
        write_webhooks(json, &sandbox->webhooks);
        write_invoices(json, &sandbox->invoices);
        json_open_array(json, "deliveries");
        delivery_scheduler_each(sandbox->scheduler, write_delivery, json);
        json_close_array(json);
        json_close_object(json);
        text = json_take(json, &len);
        result = file_replace(sandbox->state_file, text, len, error);
        secrets_free(text, len);
        return result;
}

int
state_save(struct sandbox *sandbox)
{
        const struct timeval retry = {SAVE_RETRY_S, 0};
        struct error error;

        (void)evtimer_del(sandbox->saving);
        if (sandbox->state_file == NULL || state_write(sandbox, &error) == 0)
                return 0;
        log_error("state file could not be written: %s", error.text);
        (void)evtimer_add(sandbox->saving, &retry);
        return -1;
}

void
state_save_soon(struct sandbox *sandbox)
{
        const struct timeval in = {0, SAVE_AFTER_US};

        if (sandbox->state_file != NULL && !evtimer_pending(sandbox->saving, NULL))
                (void)evtimer_add(sandbox->saving, &in);
}

/* Read a member that is a whole number. */
static int
read_number(const struct json_value *object, const char *name, uint64_t max, int64_t *number)
{
        const struct json_value *member = json_tree_get(object, name);
        struct error error;
        uint64_t value;

        if (member == NULL || member->type != JSON_NUMBER ||
            number_parse(member->text, 0, max, &value, &error) != 0)
                return -1;
        *number = (int64_t)value;
        return 0;
}

static int
read_ms(const struct json_value *object, const char *name, int64_t *ms)
{
        return read_number(object, name, INT64_MAX, ms);
}

static int
has_id(const struct json_value *object)
{
        const char *id = json_tree_text(object, "id");

        return id != NULL && strlen(id) == BYTES_UUID_SIZE - 1 && transport_is_id(id);
}

static int
load_webhook(struct sandbox *sandbox, const struct json_value *saved, struct error *error)
{
        const struct json_value *request = json_tree_get(saved, "request");
        struct violations violations = {0};
        struct webhook *webhook;

        if (!has_id(saved) || request == NULL)
                return error_set(error, "a webhook has no id or no request");
        webhook = webhooks_new(request, json_tree_text(saved, "owner"), &violations);
        if (webhook == NULL) {
                (void)error_set(error, "a webhook's %s %s", violations.items[0].field,
                                violations.items[0].message);
                violations_clear(&violations);
                return -1;
        }
        memcpy(webhook->id, json_tree_text(saved, "id"), BYTES_UUID_SIZE);
        TAILQ_INSERT_TAIL(&sandbox->webhooks, webhook, entry);
        return read_ms(saved, "createdMs", &webhook->created_ms) == 0
                   ? 0
                   : error_set(error, "a webhook has no createdMs");
}

static int
load_invoice(struct sandbox *sandbox, const struct json_value *saved, struct error *error)
{
        struct invoice_facts facts = {.id = json_tree_text(saved, "id"),
                                      .entity = json_tree_text(saved, "entity"),
                                      .idempotency_key = json_tree_text(saved, "idempotencyKey"),
                                      .payload = json_tree_text(saved, "payload")};
        struct violations violations = {0};
        struct json_value *payload;
        int result = 0;

        if (!has_id(saved) || facts.entity == NULL || facts.payload == NULL ||
            read_ms(saved, "submittedMs", &facts.submitted_ms) != 0 ||
            read_ms(saved, "decidedMs", &facts.decided_ms) != 0)
                return error_set(error, "an invoice is incomplete");
        facts.len = strlen(facts.payload);
        payload = json_tree_parse(facts.payload, facts.len, error);
        if (payload == NULL)
                return error_prefix(error, "an invoice's payload");
        invoice_rules_check(payload, &violations);
        facts.outcome = json_tree_text(payload, "outcome");
        if (violations.n > 0)
                result = error_set(error, "an invoice's %s %s", violations.items[0].field,
                                   violations.items[0].message);
        else if (invoices_add(&sandbox->invoices, &facts) == NULL)
                result = error_set(error, "out of memory");
        violations_clear(&violations);
        json_tree_free(payload);
        return result;
}

static int
load_delivery(struct sandbox *sandbox, const struct json_value *saved, struct error *error)
{
        const char *webhook_id = json_tree_text(saved, "webhookId");
        struct pending_delivery pending = {.id = json_tree_text(saved, "id"),
                                           .event = {.entity = json_tree_text(saved, "entity"),
                                                     .kind = json_tree_text(saved, "kind"),
                                                     .body = json_tree_text(saved, "body")}};
        struct webhook *webhook;
        int64_t n_attempts;

        if (!has_id(saved) || webhook_id == NULL || pending.event.entity == NULL ||
            !keys_is_entity(pending.event.entity) || pending.event.kind == NULL ||
            !event_filter_is_kind(pending.event.kind) || pending.event.body == NULL ||
            read_number(saved, "attempts", DELIVERY_SCHEDULER_MAX_ATTEMPTS, &n_attempts) != 0 ||
            read_ms(saved, "dueMs", &pending.due_ms) != 0)
                return error_set(error, "a delivery is incomplete");
        if (json_tree_get(saved, "signedS") != NULL && /* absent in files of old versions */
            read_number(saved, "signedS", INT64_MAX, &pending.signed_s) != 0)
                return error_set(error, "a delivery's signedS is not a number");
        webhook = webhooks_find(&sandbox->webhooks, webhook_id);
        if (webhook == NULL)
                return error_set(error, "a delivery's webhook does not exist");
        pending.event.len = strlen(pending.event.body);
        pending.n_attempts = (unsigned)n_attempts;
        return delivery_scheduler_restore(sandbox->scheduler, webhook, &pending) == 0
                   ? 0
                   : error_set(error, "too many deliveries");
}

/* Call load for each element of the array that is a member of root. */
static int
load_each(struct sandbox *sandbox, const struct json_value *root, const char *name,
          int (*load)(struct sandbox *sandbox, const struct json_value *saved, struct error *error),
          struct error *error)
{
        const struct json_value *array = json_tree_get(root, name);

        if (array == NULL || array->type != JSON_ARRAY)
                return error_set(error, "%s is missing", name);
        for (const struct json_value *each = array->first; each != NULL; each = each->next) {
                if (load(sandbox, each, error) != 0)
                        return -1;
        }
        return 0;
}

int
state_load(struct sandbox *sandbox, struct error *error)
{
        const char *path = sandbox->state_file;
        struct json_value *root = NULL;
        size_t len;
        char *text;
        int result = -1;

        if (access(path, F_OK) != 0 && errno == ENOENT)
                return 0;
        if (secrets_check_file(path, error) != 0)
                return -1;
        text = file_read(path, FILE_MAX_BYTES, &len, error);
        if (text != NULL)
                root = json_tree_parse(text, len, error);
        if (root != NULL && load_each(sandbox, root, "subscriptions", load_webhook, error) == 0 &&
            load_each(sandbox, root, "invoices", load_invoice, error) == 0 &&
            (json_tree_get(root, "deliveries") == NULL || /* absent in files of old versions */
             load_each(sandbox, root, "deliveries", load_delivery, error) == 0))
                result = 0;
        if (result == 0)
                log_info("state read subscriptions=%zu invoices=%zu deliveries=%zu",
                         webhooks_count(&sandbox->webhooks), sandbox->invoices.n,
                         delivery_scheduler_count(sandbox->scheduler));
        else
                (void)error_prefix(error, "cannot read the state file %s", path);
        json_tree_free(root);
        secrets_free(text, text == NULL ? 0 : len);
        return result;
}
