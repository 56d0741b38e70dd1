#include "sandbox/invoices.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define DECISION_US 200000 /* from submission to the authority's decision */

static void
invoice_free(struct invoice *invoice)
{
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
        invoice_free(oldest);
}

void
invoices_init(struct invoices *invoices, struct event_base *base, invoices_decided *decided, void *arg)
{
        *invoices = (struct invoices){.base = base, .decided = decided, .arg = arg};
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

static void
write_rejection(struct json_writer *json, const struct invoice *invoice)
{
        char rejected[CLOCK_RFC3339_SIZE];

        json_member(json, "rejectedAt", clock_format_ms(invoice->decided_ms, rejected));
        json_open_object(json, "error");
        json_member(json, "source", "Sandbox");
        json_member(json, "code", "SANDBOX-1");
        json_member(json, "message", "The invoice was rejected");
        json_member(json, "detail", "The invoice asked for it: its outcome is rejected.");
        json_close_object(json);
}

void
invoices_write_status(struct json_writer *json, const struct invoice *invoice)
{
        json_member(json, "clearanceStatus", invoice->decision->status);
        json_flag(json, "terminal", invoice->decision->terminal);
        if (strcmp(invoice->decision->status, "REJECTED") == 0)
                write_rejection(json, invoice);
}

static void
on_decision(evutil_socket_t fd, short what, void *arg)
{
        struct invoice *invoice = arg;
        const struct invoices *all = invoice->all;

        (void)fd;
        (void)what;
        invoice->decision = invoice->outcome;
        invoice->decided_ms = clock_now_ms();
        log_info("invoice decided invoice-id=%s status=%s", invoice->id, invoice->decision->status);
        all->decided(invoice, all->arg);
}

static void
schedule_decision(struct invoice *invoice)
{
        const struct timeval in = {0, DECISION_US};

        invoice->timer = evtimer_new(invoice->all->base, on_decision, invoice);
        if (invoice->timer == NULL || evtimer_add(invoice->timer, &in) != 0)
                mem_exit();
}

struct invoice *
invoices_add(struct invoices *all, const struct invoice_facts *facts)
{
        struct invoice *new = mem_alloc(sizeof(*new));

        if (all->n == INVOICES_MAX)
                drop_oldest(all);
        new->all = all;
        (void)bytes_random_uuid(new->id);
        new->entity = mem_strdup(facts->entity);
        new->idempotency_key = facts->idempotency_key == NULL ? NULL : mem_strdup(facts->idempotency_key);
        new->payload = mem_strndup(facts->payload, facts->len);
        new->len = facts->len;
        new->decision = &invoice_rules_undecided;
        new->outcome = invoice_rules_decision(facts->outcome);
        schedule_decision(new);
        TAILQ_INSERT_TAIL(&all->list, new, entry);
        all->n++;
        return new;
}
