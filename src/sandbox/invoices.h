#ifndef SANDBOX_INVOICES_H
#define SANDBOX_INVOICES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "sandbox/api.h"
#include "sandbox/invoice_rules.h"

#define INVOICES_MAX 10000
#define INVOICES_BYTES_MAX ((size_t)64 << 20)
#define INVOICES_DIGEST_SIZE 32

/* A submitted invoice, with its payload byte for byte. */
struct invoice {
        TAILQ_ENTRY(invoice) entry;
        struct sandbox *sandbox;
        char id[BYTES_UUID_SIZE];
        char *entity;
        char *idempotency_key; /* NULL: none */
        char *payload;
        size_t len;
        uint8_t digest[INVOICES_DIGEST_SIZE];    /* SHA-256 of the payload */
        const struct invoice_decision *decision; /* what the authority will decide, or has decided */
        int64_t submitted_ms;
        int64_t decided_ms;  /* 0: not yet */
        struct event *timer; /* fires when the authority decides */
};

TAILQ_HEAD(invoice_list, invoice);

/*
 * All invoices, the oldest first. The oldest are dropped to stay within INVOICES_MAX and INVOICES_BYTES_MAX.
 */
struct invoices {
        struct invoice_list list;
        size_t n;
        size_t n_bytes;
};

void invoices_init(struct invoices *invoices);
void invoices_clear(struct invoices *invoices);

/* A new invoice, or one from the state file. */
struct invoice_facts {
        const char *id; /* NULL: make a new one */
        const char *entity;
        const char *idempotency_key; /* NULL: none */
        const char *payload;         /* without violations */
        size_t len;
        const char *outcome; /* name of the decision; NULL: accepted */
        int64_t submitted_ms;
        int64_t decided_ms; /* 0: not yet; the authority decides after the configured delay */
};

/* Add an invoice; the facts are copied. Returns NULL when out of memory. */
struct invoice *invoices_add(struct sandbox *sandbox, const struct invoice_facts *facts) MUST_CHECK;

/* Handle POST /v1/invoices: add an invoice, or recognize a repeated submission by its idempotency key. */
void invoices_submit(const struct api_call *call);

/* Handle GET /v1/invoices/{id}: report the status. */
void invoices_poll(const struct api_call *call);

#endif
