#include "sandbox/invoices.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/sandbox.h"

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
forget_oldest(struct invoices *invoices)
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
                forget_oldest(invoices);
}

/* The authority has decided. */
static void
on_decided(evutil_socket_t fd, short what, void *arg)
{
        struct invoice *invoice = arg;

        (void)fd;
        (void)what;
        invoice->decided_ms = clock_now_ms();
        log_info("decided invoice-id=%s status=%s", invoice->id, invoice->outcome->status);
        invoice_publish(invoice, invoice->outcome->kind);
        sandbox_save_soon(invoice->sandbox);
}

static int
schedule(struct invoice *invoice)
{
        uint64_t ms = invoice->sandbox->options->delay_ms;
        const struct timeval in = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

        invoice->timer = evtimer_new(invoice->sandbox->base, on_decided, invoice);
        if (invoice->timer == NULL)
                return -1;
        return invoice->decided_ms == 0 ? evtimer_add(invoice->timer, &in) : 0;
}

static int
digest(const char *payload, size_t len, uint8_t out[INVOICE_DIGEST_SIZE])
{
        return EVP_Digest(payload, len, out, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
}

struct invoice *
invoices_add(struct sandbox *sandbox, const struct invoice_facts *facts)
{
        struct invoices *all = &sandbox->invoices;
        struct invoice *new = mem_alloc(sizeof(*new));

        while (all->n > 0 && (all->n >= INVOICES_MAX || all->n_bytes + facts->len > INVOICES_BYTES_MAX))
                forget_oldest(all);
        new->sandbox = sandbox;
        if (facts->id == NULL)
                (void)bytes_random_uuid(new->id);
        else
                memcpy(new->id, facts->id, BYTES_UUID_SIZE);
        new->entity = mem_strdup(facts->entity);
        new->idempotency_key = facts->idempotency_key == NULL ? NULL : mem_strdup(facts->idempotency_key);
        new->payload = mem_strndup(facts->payload, facts->len);
        new->len = facts->len;
        new->outcome = outcome_find(facts->outcome);
        new->submitted_ms = facts->submitted_ms;
        new->decided_ms = facts->decided_ms;
        if (digest(facts->payload, facts->len, new->digest) != 0 || schedule(new) != 0) {
                invoice_free(new);
                return NULL;
        }
        TAILQ_INSERT_TAIL(&all->list, new, entry);
        all->n++;
        all->n_bytes += new->len;
        return new;
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
invoices_find_by_key(const struct invoices *invoices, const char *entity, const char *key)
{
        struct invoice *each;

        TAILQ_FOREACH(each, &invoices->list, entry)
        {
                if (each->idempotency_key != NULL && strcmp(each->idempotency_key, key) == 0 &&
                    strcmp(each->entity, entity) == 0)
                        return each;
        }
        return NULL;
}

int
invoice_has_payload(const struct invoice *invoice, const char *payload, size_t len)
{
        uint8_t its[INVOICE_DIGEST_SIZE];

        return digest(payload, len, its) == 0 && CRYPTO_memcmp(its, invoice->digest, sizeof(its)) == 0;
}

const struct outcome *
invoice_outcome(const struct invoice *invoice)
{
        return invoice->decided_ms == 0 ? &outcome_submitted : invoice->outcome;
}
