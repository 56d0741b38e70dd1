#include "sandbox/invoices.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

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
invoices_init(struct invoices *invoices, struct event_base *base, uint64_t delay_ms,
              invoices_decided *decided, void *arg)
{
        *invoices = (struct invoices){.base = base, .delay_ms = delay_ms, .decided = decided, .arg = arg};
        TAILQ_INIT(&invoices->list);
}

void
invoices_clear(struct invoices *invoices)
{
        while (invoices->n > 0)
                drop_oldest(invoices);
}

struct invoice *
invoices_find(const struct invoices *invoices, const char *id)
{
        struct invoice *each;

        TAILQ_FOREACH(each, &invoices->list, entry)
        {
                if (strcmp(each->id, id) == 0)
                        return each;
        }
        return NULL;
}

struct invoice *
invoices_find_by_key(const struct invoices *invoices, const char *entity, const char *idempotency_key)
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

int
invoices_has_payload(const struct invoice *invoice, const char *payload, size_t len)
{
        uint8_t presented[INVOICES_DIGEST_SIZE];

        return digest(payload, len, presented) == 0 &&
               CRYPTO_memcmp(presented, invoice->digest, sizeof(presented)) == 0;
}

const struct invoice_decision *
invoices_decision(const struct invoice *invoice)
{
        return invoice->decided_ms == 0 ? &invoice_rules_undecided : invoice->decision;
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

void
invoices_write_status(struct json_writer *json, const struct invoice *invoice,
                      const struct json_value *payload)
{
        const struct invoice_decision *decision = invoices_decision(invoice);

        json_member(json, "clearanceStatus", decision->status);
        json_flag(json, "terminal", decision->terminal);
        if (strcmp(decision->status, "REJECTED") == 0)
                write_rejection(json, invoice, json_tree_text(payload, "country"));
}

static void
on_decision(evutil_socket_t fd, short what, void *arg)
{
        struct invoice *invoice = arg;
        const struct invoices *all = invoice->all;

        (void)fd;
        (void)what;
        invoice->decided_ms = clock_now_ms();
        log_info("invoice decided invoice-id=%s status=%s", invoice->id, invoice->decision->status);
        all->decided(invoice, all->arg);
}

static int
schedule_decision(struct invoice *invoice)
{
        uint64_t ms = invoice->all->delay_ms;
        const struct timeval in = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

        invoice->timer = evtimer_new(invoice->all->base, on_decision, invoice);
        if (invoice->timer == NULL)
                return -1;
        return invoice->decided_ms == 0 ? evtimer_add(invoice->timer, &in) : 0;
}

struct invoice *
invoices_add(struct invoices *all, const struct invoice_facts *facts)
{
        struct invoice *new = mem_alloc(sizeof(*new));

        while (all->n > 0 && (all->n >= INVOICES_MAX || all->n_bytes + facts->len > INVOICES_BYTES_MAX))
                drop_oldest(all);
        new->all = all;
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
