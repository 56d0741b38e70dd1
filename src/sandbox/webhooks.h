#ifndef SANDBOX_WEBHOOKS_H
#define SANDBOX_WEBHOOKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "model/signature.h"
#include "sandbox/delivery_queue.h"
#include "sandbox/violations.h"

/* A subscription: the events that a client wants, and the endpoint to deliver them to. */
struct webhook {
        TAILQ_ENTRY(webhook) entry;
        char id[BYTES_UUID_SIZE];
        char *url;
        char **events; /* kinds, `reporting_batch.*` for that family, or `*` */
        size_t n_events;
        struct signature_key *key;
        char *owner; /* the entity whose events are delivered; NULL: any */
        int64_t created_ms;
        struct delivery_queue *queue; /* NULL: none yet */
};

TAILQ_HEAD(webhooks, webhook);

/* Record each invalid member of url, events and secret. */
void webhooks_check(const struct json_value *payload, struct violations *violations);

/* Create a webhook with a new id from a payload without violations. */
struct webhook *webhooks_new(const struct json_value *payload, const char *owner);

/* Free the webhook and its queue. NULL is harmless. */
void webhooks_free(struct webhook *webhook);

/* Return whether the webhook subscribes to an entity's events of a kind. */
int webhooks_wants(const struct webhook *webhook, const char *entity, const char *kind);

struct webhook *webhooks_find(const struct webhooks *webhooks, const char *id);

/* Free all webhooks. */
void webhooks_clear(struct webhooks *webhooks);

#endif
