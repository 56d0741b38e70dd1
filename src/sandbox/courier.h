#ifndef SANDBOX_COURIER_H
#define SANDBOX_COURIER_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/compiler.h"
#include "sandbox/subscriptions.h"

/*
 * Takes deliveries to their endpoints: signs each attempt anew, or a delivery once, tries until an endpoint answers 2xx or the attempts are
 * used up, then sends a mail. A few attempts at a time for each subscription, so that a slow endpoint holds up itself only.
 *
 *   waiting --its turn--> under way --2xx--> gone
 *      ^                      |--10 attempts--> mail, gone
 *      `----interval passed---'
 *
 * What is not done can be kept, and gone on with by another courier.
 */
struct courier;

struct courier_settings {
        const char *service; /* headers are x-<service>-signature and so on */
        const char *outbox;  /* NULL: mails are only logged */
        const char *ca_file; /* NULL: the system's */
        uint64_t retry_base_ms;
        int sign_once; /* all attempts of a delivery carry the timestamp and the signature of the first */
        void (*changed)(void *arg); /* what there is to keep has changed */
        void *arg;
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

/* One of them, as it is kept. */
struct courier_pending {
        const char *id;
        struct courier_event event;
        unsigned n_attempts; /* one that is under way counts: it may arrive */
        int64_t due_ms;      /* the next one, by the wall clock */
        int64_t signed_s;    /* the timestamp of the last one, by the wall clock; 0: none was made */
};

/* Call visit for each, in the order in which they began. */
void courier_each(const struct courier *courier,
                  void (*visit)(const struct subscription *subscription,
                                const struct courier_pending *pending, void *arg),
                  void *arg);

/**
 * courier_resume(courier, subscription, pending):
 * Go on with a delivery that was kept; it is copied. Where the attempts are used up, a mail is sent now. Returns 0, or -1 when
 * memory fails or there are too many.
 */
int courier_resume(struct courier *courier, struct subscription *subscription,
                   const struct courier_pending *pending) MUST_CHECK;

#endif
