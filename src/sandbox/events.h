#ifndef SANDBOX_EVENTS_H
#define SANDBOX_EVENTS_H

#include <yajl/yajl_gen.h>

#include "sandbox/call.h"
#include "sandbox/courier.h"

/**
 * events_publish(sandbox, event, deliveries):
 * Begin a delivery of the event to each subscription that wants it. deliveries is NULL, or an array that is open, which gets
 * an object {webhookId, deliveryId} for each.
 */
void events_publish(struct sandbox *sandbox, const struct courier_event *event, yajl_gen deliveries);

/* POST /v1/sandbox/fire: an event of any kind. */
void events_fire(const struct call *call);

#endif
