#ifndef SANDBOX_API_ROUTES_H
#define SANDBOX_API_ROUTES_H

#include "http/server.h"
#include "sandbox/api.h"

/*
 * The routes of the HTTP API. api_routes.c authenticates each call, finds its route, and runs the route's
 * handler, which answers.
 */

/* Callbacks and limits of the HTTP server; the callback argument is the struct sandbox. */
extern const struct http_callbacks api_routes_callbacks;
extern const struct http_limits api_routes_limits;

/* GET /v1/webhooks: list the webhooks that the key may see. */
void api_webhooks_list(const struct api_call *call);

/* POST /v1/webhooks: create a webhook for the key's entity, or for all entities. */
void api_webhooks_register(const struct api_call *call);

/* DELETE /v1/webhooks/{id}: remove the webhook and drop its pending deliveries. */
void api_webhooks_remove(const struct api_call *call);

/* POST /v1/invoices: add an invoice, or recognize a repeated submission by its idempotency key. */
void api_invoices_submit(const struct api_call *call);

/* GET /v1/invoices/{id}: report the status. */
void api_invoices_poll(const struct api_call *call);

/* POST /v1/sandbox/fire: publish an event of any kind. */
void api_events_fire(const struct api_call *call);

#endif
