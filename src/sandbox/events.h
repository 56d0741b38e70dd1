#ifndef SANDBOX_EVENTS_H
#define SANDBOX_EVENTS_H

#include "sandbox/delivery_scheduler.h"
#include "sandbox/invoices.h"

/* Publishes events to the webhooks that subscribe to them. */

struct json_writer;
struct sandbox;

/**
 * events_publish(sandbox, event, deliveries):
 * Schedule a delivery of the event to each webhook that subscribes to it. deliveries is NULL or an open JSON
 * array, to which the ids of webhook and delivery are appended.
 */
void events_publish(struct sandbox *sandbox, const struct outgoing_event *event,
                    struct json_writer *deliveries);

/* Publish an event of this kind with the invoice's fields and status. */
void events_publish_invoice(struct sandbox *sandbox, const struct invoice *invoice, const char *kind);

#endif
