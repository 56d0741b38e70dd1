#ifndef SANDBOX_INVOICES_H
#define SANDBOX_INVOICES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <yajl/yajl_gen.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "sandbox/outcome.h"

#define INVOICES_MAX 10000
#define INVOICES_BYTES_MAX ((size_t)64 << 20)
#define INVOICE_DIGEST_SIZE 32

/* An invoice that was submitted. Its payload is kept as it came. */
struct invoice {
        TAILQ_ENTRY(invoice) entry;
        struct sandbox *sandbox;
        char id[BYTES_UUID_SIZE];
        char *entity;
        char *idempotency_key; /* NULL: none */
        char *payload;
        size_t len;
        uint8_t digest[INVOICE_DIGEST_SIZE]; /* of the payload */
        const struct outcome *outcome;       /* what the authority will decide */
        int64_t submitted_ms;
        int64_t decided_ms;  /* 0: not yet */
        struct event *timer; /* until it decides */
};

TAILQ_HEAD(invoice_list, invoice);

/* All of them, the oldest first; beyond INVOICES_MAX, or so many bytes, the oldest are forgotten. */
struct invoices {
        struct invoice_list list;
        size_t n;
        size_t n_bytes;
};

void invoices_init(struct invoices *invoices);
void invoices_clear(struct invoices *invoices);

/* What is known of an invoice that is to be added. */
struct invoice_facts {
        const char *id; /* NULL: a new one */
        const char *entity;
        const char *idempotency_key; /* NULL: none */
        const char *payload;         /* without violations */
        size_t len;
        const char *outcome; /* NULL: accepted */
        int64_t submitted_ms;
        int64_t decided_ms; /* 0: the authority is about to decide */
};

/* Add one; the facts are copied. Returns NULL when memory fails. */
struct invoice *invoices_add(struct sandbox *sandbox, const struct invoice_facts *facts) MUST_CHECK;

struct invoice *invoices_find(const struct invoices *invoices, const char *id);
struct invoice *invoices_find_by_key(const struct invoices *invoices, const char *entity, const char *key);

/* Whether the payload is the invoice's, byte for byte. */
int invoice_has_payload(const struct invoice *invoice, const char *payload, size_t len);

/* As it stands: submitted, or what the authority decided. */
const struct outcome *invoice_outcome(const struct invoice *invoice);

/* Write clearanceStatus and terminal, for a rejection also rejectedAt and error, into an object that is open. */
void invoice_write_status(yajl_gen json, const struct invoice *invoice);

/* Publish an event about the invoice: with its fields and its status. */
void invoice_publish(const struct invoice *invoice, const char *kind);

#endif
