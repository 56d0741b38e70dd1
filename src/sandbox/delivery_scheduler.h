#ifndef SANDBOX_DELIVERY_SCHEDULER_H
#define SANDBOX_DELIVERY_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/compiler.h"
#include "sandbox/webhooks.h"

/*
 * Schedules the attempts of deliveries. A delivery is retried, with a doubling interval, until its endpoint
 * answers 2xx or all attempts have failed; then a mail reports it to the entity's users. The number of
 * concurrent attempts is limited for each webhook, so that a slow endpoint delays only its own deliveries.
 *
 *   waiting for its turn --> attempt --2xx--> done
 *            ^                  |--10th attempt failed--> mail, done
 *            `-- retry interval-'
 */
struct delivery_scheduler;

/* Attempts of one delivery, including the first. */
#define DELIVERY_SCHEDULER_MAX_ATTEMPTS 10

struct delivery_scheduler_settings {
        const char *service; /* headers are x-<service>-signature and so on */
        const char *outbox;  /* directory for mails; NULL: mails are only logged */
        const char *ca_file; /* NULL: the system's certificates */
        uint64_t retry_base_ms;
        int sign_once;              /* all attempts of a delivery carry the headers of the first */
        void (*changed)(void *arg); /* called when a pending delivery has changed */
        void *arg;
};

struct outgoing_event {
        const char *entity;
        const char *kind;
        const void *body;
        size_t len;
};

/* A delivery that is neither accepted nor given up, in the form in which the state file keeps it. */
struct pending_delivery {
        const char *id;
        struct outgoing_event event;
        unsigned n_attempts; /* including the current attempt, which may succeed */
        int64_t due_ms;      /* time of the next attempt; wall clock */
        int64_t signed_s;    /* timestamp of the last attempt; 0: no attempt yet */
};

/* The texts in the settings must outlive the scheduler. Returns NULL when out of memory. */
struct delivery_scheduler *
delivery_scheduler_new(struct event_base *base,
                       const struct delivery_scheduler_settings *settings) MUST_CHECK;

/* Drop all pending deliveries. NULL is harmless. */
void delivery_scheduler_free(struct delivery_scheduler *scheduler);

/**
 * delivery_scheduler_add(scheduler, webhook, event):
 * Schedule a delivery of the event, which is copied. Returns its delivery-id, valid until the next pass of
 * the event loop, or NULL when too many deliveries are pending.
 */
const char *delivery_scheduler_add(struct delivery_scheduler *scheduler, struct webhook *webhook,
                                   const struct outgoing_event *event);

/* Drop the pending deliveries of a webhook. Call this before freeing the webhook. */
void delivery_scheduler_cancel(struct delivery_scheduler *scheduler, const struct webhook *webhook);

/* Return the number of pending deliveries. */
size_t delivery_scheduler_count(const struct delivery_scheduler *scheduler);

/* Call visit for each pending delivery, the oldest first. */
void delivery_scheduler_each(const struct delivery_scheduler *scheduler,
                             void (*visit)(const struct webhook *webhook,
                                           const struct pending_delivery *pending, void *arg),
                             void *arg);

/**
 * delivery_scheduler_restore(scheduler, webhook, pending):
 * Continue a delivery from the state file; pending is copied. If it has no attempts left, send the mail.
 * Returns 0, or -1 when out of memory or too many deliveries are pending.
 */
int delivery_scheduler_restore(struct delivery_scheduler *scheduler, struct webhook *webhook,
                               const struct pending_delivery *pending) MUST_CHECK;

/*
 * Return the interval after the nth attempt (1 to DELIVERY_SCHEDULER_MAX_ATTEMPTS - 1): base_ms, doubled each
 * time.
 */
uint64_t delivery_scheduler_retry_ms(uint64_t base_ms, unsigned n);

#endif
