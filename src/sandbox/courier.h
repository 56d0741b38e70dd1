#ifndef SANDBOX_COURIER_H
#define SANDBOX_COURIER_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/compiler.h"
#include "sandbox/subscriptions.h"

/*
 * Takes deliveries to their endpoints: signs each attempt anew, tries until an endpoint answers 2xx or the attempts are
 * used up, then sends a mail. A few attempts at a time for each subscription, so that a slow endpoint holds up itself only.
 *
 *   waiting --its turn--> under way --2xx--> gone
 *      ^                      |--10 attempts--> mail, gone
 *      `----interval passed---'
 */
struct courier;

struct courier_settings {
        const char *service; /* headers are x-<service>-signature and so on */
        const char *outbox;  /* NULL: mails are only logged */
        const char *ca_file; /* NULL: the system's */
        uint64_t retry_base_ms;
};

/* What is to be delivered. */
struct courier_event {
        const char *entity;
        const char *kind;
        const void *body;
        size_t len;
};

/* Returns NULL when memory fails. The settings' texts must outlive it. */
struct courier *courier_new(struct event_base *base, const struct courier_settings *settings) MUST_CHECK;

/* Drops what is not delivered. NULL is harmless. */
void courier_free(struct courier *courier);

/**
 * courier_send(courier, subscription, event):
 * Begin a delivery; the event is copied. Returns its delivery-id, valid until the next event loop pass, or NULL when too
 * many wait already.
 */
const char *courier_send(struct courier *courier, struct subscription *subscription,
                         const struct courier_event *event);

/* The subscription is about to go: drop what is on its way to it. */
void courier_forget(struct courier *courier, struct subscription *subscription);

/* Deliveries that are not done. */
size_t courier_n_jobs(const struct courier *courier);

#endif
