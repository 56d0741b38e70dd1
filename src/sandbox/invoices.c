#include "sandbox/invoices.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"

#define IDEMPOTENCY_KEY_MAX 255

static void
invoice_free(struct invoice *invoice)
{
        if (invoice->timer != NULL)
                event_free(invoice->timer);
        free(invoice->entity);
        free(invoice->idempotency_key);
        free(invoice->payload);
        free(invoice);
}

static void
drop_oldest(struct invoices *invoices)
{
        struct invoice *oldest = TAILQ_FIRST(&invoices->list);

        TAILQ_REMOVE(&invoices->list, oldest, entry);
        invoices->n--;
        invoices->n_bytes -= oldest->len;
        invoice_free(oldest);
}

void
invoices_init(struct invoices *invoices)
{
        *invoices = (struct invoices){.n = 0};
        TAILQ_INIT(&invoices->list);
}

void
invoices_clear(struct invoices *invoices)
{
        while (invoices->n > 0)
                drop_oldest(invoices);
}

static struct invoice *
find(const struct invoices *invoices, const char *id)
{
        struct invoice *each;

        TAILQ_FOREACH(each, &invoices->list, entry)
        {
                if (strcmp(each->id, id) == 0)
                        return each;
        }
        return NULL;
}

static struct invoice *
find_by_key(const struct invoices *invoices, const char *entity, const char *idempotency_key)
{
        struct invoice *each;

        TAILQ_FOREACH(each, &invoices->list, entry)
        {
                if (each->idempotency_key != NULL && strcmp(each->idempotency_key, idempotency_key) == 0 &&
                    strcmp(each->entity, entity) == 0)
                        return each;
        }
        return NULL;
}

static int
digest(const char *payload, size_t len, uint8_t out[INVOICES_DIGEST_SIZE])
{
        return EVP_Digest(payload, len, out, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
}

/* Return whether the payload equals the invoice's, byte for byte. */
static int
has_payload(const struct invoice *invoice, const char *payload, size_t len)
{
        uint8_t presented[INVOICES_DIGEST_SIZE];

        return digest(payload, len, presented) == 0 &&
               CRYPTO_memcmp(presented, invoice->digest, sizeof(presented)) == 0;
}

/* The status and the events of an invoice. */

/* Return the authority's decision, or invoice_rules_undecided. */
static const struct invoice_decision *
current_decision(const struct invoice *invoice)
{
        return invoice->decided_ms == 0 ? &invoice_rules_undecided : invoice->decision;
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

static void
write_rejection(struct json_writer *json, const struct invoice *invoice, const char *country)
{
        char rejected[CLOCK_RFC3339_SIZE];

        json_member(json, "rejectedAt", clock_format_ms(invoice->decided_ms, rejected));
        json_open_object(json, "error");
        json_member(json, "source", invoice_rules_authority(country));
        json_member(json, "code", "SANDBOX-1");
        json_member(json, "message", "The invoice was rejected");
        json_member(json, "detail", "The invoice asked for it: its outcome is rejected.");
        json_close_object(json);
}

/* Write clearanceStatus and terminal; for a rejection also rejectedAt and error. */
static void
write_status(struct json_writer *json, const struct invoice *invoice, const struct json_value *payload)
{
        const struct invoice_decision *decision = current_decision(invoice);

        json_member(json, "clearanceStatus", decision->status);
        json_flag(json, "terminal", decision->terminal);
        if (strcmp(decision->status, "REJECTED") == 0)
                write_rejection(json, invoice, json_tree_text(payload, "country"));
}

/* Publish an event with the invoice's fields and status. */
static void
publish(const struct invoice *invoice, const char *kind)
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
        write_status(json, invoice, payload);
        json_close_object(json);
        json_tree_free(payload);
        body = json_take(json, &event.len);
        event.body = body;
        events_publish(invoice->sandbox, &event, NULL);
        free(body);
}

/* The authority decides. */

static void
on_decision(evutil_socket_t fd, short what, void *arg)
{
        struct invoice *invoice = arg;

        (void)fd;
        (void)what;
        invoice->decided_ms = clock_now_ms();
        log_info("invoice decided invoice-id=%s status=%s", invoice->id, invoice->decision->status);
        publish(invoice, invoice->decision->kind);
        sandbox_save_soon(invoice->sandbox);
}

static int
schedule_decision(struct invoice *invoice)
{
        uint64_t ms = invoice->sandbox->options->delay_ms;
        const struct timeval in = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

        invoice->timer = evtimer_new(invoice->sandbox->base, on_decision, invoice);
        if (invoice->timer == NULL)
                return -1;
        return invoice->decided_ms == 0 ? evtimer_add(invoice->timer, &in) : 0;
}

struct invoice *
invoices_add(struct sandbox *sandbox, const struct invoice_facts *facts)
{
        struct invoices *all = &sandbox->invoices;
        struct invoice *new = mem_alloc(sizeof(*new));

        while (all->n > 0 && (all->n >= INVOICES_MAX || all->n_bytes + facts->len > INVOICES_BYTES_MAX))
                drop_oldest(all);
        new->sandbox = sandbox;
        if (facts->id == NULL)
                (void)bytes_random_uuid(new->id);
        else
                memcpy(new->id, facts->id, BYTES_UUID_SIZE);
        new->entity = mem_strdup(facts->entity);
        new->idempotency_key = facts->idempotency_key == NULL ? NULL : mem_strdup(facts->idempotency_key);
        new->payload = mem_strndup(facts->payload, facts->len);
        new->len = facts->len;
        new->decision = invoice_rules_decision(facts->outcome);
        new->submitted_ms = facts->submitted_ms;
        new->decided_ms = facts->decided_ms;
        if (digest(facts->payload, facts->len, new->digest) != 0 || schedule_decision(new) != 0) {
                invoice_free(new);
                return NULL;
        }
        TAILQ_INSERT_TAIL(&all->list, new, entry);
        all->n++;
        all->n_bytes += new->len;
        return new;
}

/* The API calls. */

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
reply_submitted(const struct api_call *call, const struct invoice *invoice, int duplicate)
{
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_flag(json, "ok", 1);
        json_member(json, "invoiceId", invoice->id);
        json_flag(json, "duplicate", duplicate);
        json_member(json, "clearanceStatus", current_decision(invoice)->status);
        json_close_object(json);
        api_reply(call, 200, json);
}

/* Answer a submission whose idempotency key was used before. */
static void
submit_again(const struct api_call *call, const struct invoice *earlier)
{
        size_t len;
        const char *body = http_request_body(call->request, &len);

        if (!has_payload(earlier, body, len)) {
                api_refuse(call, 409, NULL,
                           "this x-idempotency-key was used with a different payload; use a new key");
                return;
        }
        log_info("invoice submitted again invoice-id=%s", earlier->id);
        publish(earlier, "invoice.duplicate");
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
                invoice = find_by_key(&call->sandbox->invoices, entity, call->idempotency_key);
        if (invoice != NULL) {
                submit_again(call, invoice);
                return;
        }
        if (invoice_rules_check_country(payload, &error) != 0) {
                api_refuse(call, 422, NULL, "%s", error.text);
                return;
        }
        facts.payload = http_request_body(call->request, &facts.len);
        invoice = invoices_add(call->sandbox, &facts);
        if (invoice == NULL) {
                api_refuse(call, 500, NULL, "out of memory; the invoice was not accepted");
                return;
        }
        log_info("invoice submitted invoice-id=%s outcome=%s", invoice->id, invoice->decision->name);
        sandbox_save_soon(call->sandbox);
        reply_submitted(call, invoice, 0);
}

void
invoices_submit(const struct api_call *call)
{
        struct json_value *payload = api_read_body(call);
        struct violations violations = {0};
        const char *entity;

        if (payload == NULL)
                return;
        invoice_rules_check(payload, &violations);
        check_idempotency_key(call->idempotency_key, &violations);
        entity = api_entity(call, json_tree_text(payload, "entity"));
        if (violations.n > 0)
                api_refuse_violations(call, &violations);
        else if (!keys_allow_entity(call->key, entity))
                api_refuse(call, 403, NULL, "the key is for another entity");
        else
                submit(call, entity, payload);
        json_tree_free(payload);
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
        write_status(json, invoice, payload);
        json_close_object(json);
        json_tree_free(payload);
        api_reply(call, 200, json);
}

void
invoices_poll(const struct api_call *call)
{
        const struct invoice *invoice = find(&call->sandbox->invoices, call->id);

        if (invoice == NULL)
                api_refuse(call, 404, NULL, "there is no invoice with this id");
        else if (!keys_allow_entity(call->key, invoice->entity))
                api_refuse(call, 403, NULL, "the key is for another entity");
        else
                reply_status(call, invoice);
}
