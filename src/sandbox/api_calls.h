#ifndef SANDBOX_API_CALLS_H
#define SANDBOX_API_CALLS_H

#include "sandbox/api.h"

/* The calls of the HTTP API. Each function answers the call. */

/* GET /v1/webhooks: list the webhooks that the key may see. */
void api_calls_list_webhooks(const struct api_call *call);

/* POST /v1/webhooks: create a webhook for the key's entity, or for all entities. */
void api_calls_register_webhook(const struct api_call *call);

/* DELETE /v1/webhooks/{id}: remove the webhook and drop its pending deliveries. */
void api_calls_remove_webhook(const struct api_call *call);

/* POST /v1/invoices: add an invoice, or recognize a repeated submission by its idempotency key. */
void api_calls_submit_invoice(const struct api_call *call);

/* GET /v1/invoices/{id}: report the status. */
void api_calls_poll_invoice(const struct api_call *call);

/* POST /v1/sandbox/fire: publish an event of any kind. */
void api_calls_fire_event(const struct api_call *call);

#endif
