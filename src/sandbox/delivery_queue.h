#ifndef SANDBOX_DELIVERY_QUEUE_H
#define SANDBOX_DELIVERY_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/compiler.h"
#include "model/signature.h"

/*
 * The pending deliveries of one webhook. A delivery is retried, with a doubling interval, until its endpoint
 * answers 2xx or all attempts have failed; then a mail reports it to the entity's users. Few attempts are
 * made at the same time, so that a burst of events does not open a connection for each.
 *
 *   waiting, by due time --> in flight --2xx--> done
 *            ^                  |--10th attempt failed--> mail, done
 *            `-- retry interval-'
 */
struct delivery_queue;

struct transport;

/* Settings of all queues. They, and all that they point to, must outlive the queues. */
struct delivery_settings {
        struct event_base *base;
        struct transport *transport;
        const char *service; /* headers are x-<service>-signature and so on */
        const char *outbox;  /* directory for mails; NULL: mails are only logged */
        uint64_t retry_base_ms;
        int sign_once; /* all attempts of a delivery carry the headers of the first */
};

/* Where a queue delivers to. The members must outlive the queue. */
struct delivery_target {
        const char *url;
        const char *webhook_id;
        const struct signature_key *key;
};

struct outgoing_event {
        const char *entity;
        const char *kind;
        const void *body;
        size_t len;
};

/* The target is copied. */
struct delivery_queue *delivery_queue_new(const struct delivery_settings *settings,
                                          const struct delivery_target *target);

/* Drop all pending deliveries. NULL is harmless. */
void delivery_queue_free(struct delivery_queue *queue);

/**
 * delivery_queue_add(queue, event):
 * Deliver the event, which is copied. Returns its delivery-id, valid until the next pass of the event loop.
 */
const char *delivery_queue_add(struct delivery_queue *queue, const struct outgoing_event *event);

#endif
