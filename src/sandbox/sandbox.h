#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "sandbox/delivery_queue.h"
#include "sandbox/invoices.h"
#include "sandbox/keys.h"
#include "sandbox/webhooks.h"

/*
 * A stand-in for the invoicing service, in one thread. serve.c runs it; api_routes.c has the functions of
 * api_calls.c
 *
 *   register endpoints (webhooks.c),
 *   submit invoices (invoices.c), which the tax authority decides after a delay, or
 *   publish an event on demand:
 *
 *   sandbox_publish() --> delivery_queue.c --> transport.c   deliver events, signed, with retries
 */

/* The state that the API calls share. */
struct sandbox {
        struct api_keys keys;
        struct webhooks webhooks;
        struct invoices invoices;
        struct delivery_settings deliveries;
};

/**
 * sandbox_publish(sandbox, event, deliveries):
 * Deliver the event to each webhook that subscribes to it. deliveries is NULL or an open JSON array, to which
 * the ids of webhook and delivery are appended.
 */
void sandbox_publish(struct sandbox *sandbox, const struct outgoing_event *event,
                     struct json_writer *deliveries);

/* Publish an event of this kind with the invoice's fields and status. */
void sandbox_publish_invoice(struct sandbox *sandbox, const struct invoice *invoice, const char *kind);

#endif
