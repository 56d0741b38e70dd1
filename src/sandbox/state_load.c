#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "config/secrets.h"
#include "sandbox/event_filter.h"
#include "sandbox/invoice_rules.h"
#include "sandbox/retry.h"
#include "sandbox/sandbox.h"
#include "sandbox/signed_post.h"
#include "sandbox/state.h"

#define FILE_MAX ((size_t)1 << 30) /* more than invoices and deliveries can be, each character escaped */

/* The whole file as a string of *len bytes, or NULL with the reason. */
static char *
read_file(const char *path, size_t *len, struct error *error)
{
        FILE *in = fopen(path, "re");
        char *text = NULL;
        size_t size = 0;

        *len = 0;
        if (in == NULL) {
                (void)error_set(error, "%s", strerror(errno));
                return NULL;
        }
        do {
                size = size == 0 ? 65536 : size * 2;
                text = mem_resize(text, size, 1);
                *len += fread(text + *len, 1, size - *len, in);
        } while (*len == size && size < FILE_MAX);
        if (ferror(in) || *len == size) {
                (void)error_set(error, "%s", ferror(in) ? strerror(errno) : "too large");
                secrets_free(text, *len);
                text = NULL;
        }
        (void)fclose(in);
        return text;
}

/* A member that is a whole number, such as one of milliseconds. */
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

        return id != NULL && strlen(id) == BYTES_UUID_SIZE - 1 && signed_post_is_id(id);
}

static int
load_subscription(struct sandbox *sandbox, const struct json_value *saved, struct error *error)
{
        const struct json_value *request = json_tree_get(saved, "request");
        struct violations violations = {0};
        struct subscription *subscription;

        if (!has_id(saved) || request == NULL)
                return error_set(error, "a subscription has no id or no request");
        subscription = subscription_new(request, json_tree_text(saved, "owner"), &violations);
        if (subscription == NULL) {
                (void)error_set(error, "a subscription's %s %s", violations.items[0].field,
                                violations.items[0].message);
                violations_clear(&violations);
                return -1;
        }
        memcpy(subscription->id, json_tree_text(saved, "id"), BYTES_UUID_SIZE);
        TAILQ_INSERT_TAIL(&sandbox->subscriptions, subscription, entry);
        return read_ms(saved, "createdMs", &subscription->created_ms) == 0
                   ? 0
                   : error_set(error, "a subscription has no createdMs");
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
                return error_set(error, "an invoice is not complete");
        facts.len = strlen(facts.payload);
        payload = json_tree_parse(facts.payload, facts.len, error);
        if (payload == NULL)
                return error_prefix(error, "an invoice's payload");
        invoice_check(payload, &violations);
        facts.outcome = json_tree_text(payload, "outcome");
        if (violations.n > 0)
                result = error_set(error, "an invoice's %s %s", violations.items[0].field,
                                   violations.items[0].message);
        else if (invoices_add(sandbox, &facts) == NULL)
                result = error_set(error, "out of memory");
        violations_clear(&violations);
        json_tree_free(payload);
        return result;
}

static int
load_delivery(struct sandbox *sandbox, const struct json_value *saved, struct error *error)
{
        const char *webhook_id = json_tree_text(saved, "webhookId");
        struct courier_pending pending = {.id = json_tree_text(saved, "id"),
                                          .event = {.entity = json_tree_text(saved, "entity"),
                                                    .kind = json_tree_text(saved, "kind"),
                                                    .body = json_tree_text(saved, "body")}};
        struct subscription *subscription;
        int64_t n_attempts;

        if (!has_id(saved) || webhook_id == NULL || pending.event.entity == NULL ||
            !entity_is_name(pending.event.entity) || pending.event.kind == NULL ||
            !event_is_kind(pending.event.kind) || pending.event.body == NULL ||
            read_number(saved, "attempts", RETRY_MAX_ATTEMPTS, &n_attempts) != 0 ||
            read_ms(saved, "dueMs", &pending.due_ms) != 0)
                return error_set(error, "a delivery is not complete");
        if (json_tree_get(saved, "signedS") != NULL && /* of a version that did not keep it */
            read_number(saved, "signedS", INT64_MAX, &pending.signed_s) != 0)
                return error_set(error, "a delivery's signedS is not a number");
        subscription = subscriptions_find(&sandbox->subscriptions, webhook_id);
        if (subscription == NULL)
                return error_set(error, "a delivery's webhook is not there");
        pending.event.len = strlen(pending.event.body);
        pending.n_attempts = (unsigned)n_attempts;
        return courier_resume(sandbox->courier, subscription, &pending) == 0
                   ? 0
                   : error_set(error, "there are too many deliveries");
}

/* Each element of the array that is a member of root. */
static int
load_each(struct sandbox *sandbox, const struct json_value *root, const char *name,
          int (*load)(struct sandbox *sandbox, const struct json_value *saved, struct error *error),
          struct error *error)
{
        const struct json_value *array = json_tree_get(root, name);

        if (array == NULL || array->type != JSON_ARRAY)
                return error_set(error, "%s are missing", name);
        for (const struct json_value *each = array->first; each != NULL; each = each->next) {
                if (load(sandbox, each, error) != 0)
                        return -1;
        }
        return 0;
}

int
state_load(struct sandbox *sandbox, const char *path, struct error *error)
{
        struct json_value *root = NULL;
        size_t len;
        char *text;
        int result = -1;

        if (access(path, F_OK) != 0 && errno == ENOENT)
                return 0;
        if (secrets_check_file(path, error) != 0)
                return -1;
        text = read_file(path, &len, error);
        if (text != NULL)
                root = json_tree_parse(text, len, error);
        if (root != NULL && load_each(sandbox, root, "subscriptions", load_subscription, error) == 0 &&
            load_each(sandbox, root, "invoices", load_invoice, error) == 0 &&
            (json_tree_get(root, "deliveries") == NULL || /* of a version that did not keep them */
             load_each(sandbox, root, "deliveries", load_delivery, error) == 0))
                result = 0;
        if (result == 0)
                log_info("state read subscriptions=%zu invoices=%zu deliveries=%zu",
                         subscriptions_count(&sandbox->subscriptions), sandbox->invoices.n,
                         courier_n_jobs(sandbox->courier));
        else
                (void)error_prefix(error, "the state in %s cannot be read", path);
        json_tree_free(root);
        secrets_free(text, text == NULL ? 0 : len);
        return result;
}
