#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <event2/event.h>

#include "sandbox/delivery_scheduler.h"
#include "sandbox/invoices.h"
#include "sandbox/keys.h"
#include "sandbox/webhooks.h"

/*
 * A stand-in for the invoicing service, in one thread. serve.c runs it; api_routes.c calls one of
 *
 *   api_webhooks.c   register endpoints (webhooks.c)
 *   api_invoices.c   submit invoices (invoices.c), which the tax authority decides after a delay
 *   api_events.c     publish an event on demand
 *
 *   events.c --> delivery_scheduler.c --> transport.c   deliver events, signed, with retries
 *   state.c   keeps webhooks, invoices and pending deliveries in a file
 */

/* The state that the API calls share. */
struct sandbox {
        struct api_keys keys;
        struct webhooks webhooks;
        struct invoices invoices;
        struct delivery_scheduler *scheduler;
        const char *state_file; /* NULL: state is lost at exit */
        struct event *saving;   /* writes the state file when it fires */
};

#endif
