#ifndef SANDBOX_INVOICES_H
#define SANDBOX_INVOICES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "sandbox/invoice_rules.h"

struct json_writer;

#define INVOICES_MAX 10000
#define INVOICES_BYTES_MAX ((size_t)64 << 20)
#define INVOICES_DIGEST_SIZE 32

/* A submitted invoice, with its payload byte for byte. */
struct invoice {
        TAILQ_ENTRY(invoice) entry;
        struct invoices *all;
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

/* Called when the authority has decided on an invoice. */
typedef void invoices_decided(struct invoice *invoice, void *arg);

/*
 * All invoices, the oldest first. The oldest are dropped to stay within INVOICES_MAX and INVOICES_BYTES_MAX.
 */
struct invoices {
        struct invoice_list list;
        size_t n;
        size_t n_bytes;
        struct event_base *base;
        uint64_t delay_ms; /* from submission to the authority's decision */
        invoices_decided *decided;
        void *arg;
};

void invoices_init(struct invoices *invoices, struct event_base *base, uint64_t delay_ms,
                   invoices_decided *decided, void *arg);
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
struct invoice *invoices_add(struct invoices *all, const struct invoice_facts *facts) MUST_CHECK;

struct invoice *invoices_find(const struct invoices *invoices, const char *id);
struct invoice *invoices_find_by_key(const struct invoices *invoices, const char *entity,
                                     const char *idempotency_key);

/* Return whether the payload equals the invoice's, byte for byte. */
int invoices_has_payload(const struct invoice *invoice, const char *payload, size_t len);

/* Return the authority's decision, or invoice_rules_undecided. */
const struct invoice_decision *invoices_decision(const struct invoice *invoice);

/* Write clearanceStatus and terminal; for a rejection also rejectedAt and error. payload is the invoice's. */
void invoices_write_status(struct json_writer *json, const struct invoice *invoice,
                           const struct json_value *payload);

#endif
