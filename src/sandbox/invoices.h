#ifndef SANDBOX_INVOICES_H
#define SANDBOX_INVOICES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "sandbox/invoice_rules.h"

struct json_writer;

/* Older invoices are dropped. */
#define INVOICES_MAX 10000

/* A submitted invoice, with its payload byte for byte. */
struct invoice {
        TAILQ_ENTRY(invoice) entry;
        struct invoices *all;
        char id[BYTES_UUID_SIZE];
        char *entity;
        char *idempotency_key; /* NULL: none */
        char *payload;
        size_t len;
        const struct invoice_decision *decision; /* invoice_rules_undecided at first */
        const struct invoice_decision *outcome;  /* what the authority will decide, or has decided */
        int64_t decided_ms;                      /* if it has */
        struct event *timer;                     /* fires when the authority decides */
};

TAILQ_HEAD(invoice_list, invoice);

/* Called when the authority has decided on an invoice. */
typedef void invoices_decided(struct invoice *invoice, void *arg);

/* All invoices, the oldest first. */
struct invoices {
        struct invoice_list list;
        size_t n;
        struct event_base *base;
        invoices_decided *decided;
        void *arg;
};

void invoices_init(struct invoices *invoices, struct event_base *base, invoices_decided *decided, void *arg);
void invoices_clear(struct invoices *invoices);

/* A new invoice. */
struct invoice_facts {
        const char *entity;
        const char *idempotency_key; /* NULL: none */
        const char *payload;         /* without violations */
        size_t len;
        const char *outcome; /* name of the decision; NULL: accepted */
};

/* Add an invoice; the facts are copied. */
struct invoice *invoices_add(struct invoices *all, const struct invoice_facts *facts);

struct invoice *invoices_find(const struct invoices *invoices, const char *id);
struct invoice *invoices_find_by_key(const struct invoices *invoices, const char *entity,
                                     const char *idempotency_key);

/* Write clearanceStatus and terminal; for a rejection also rejectedAt and error. */
void invoices_write_status(struct json_writer *json, const struct invoice *invoice);

#endif
