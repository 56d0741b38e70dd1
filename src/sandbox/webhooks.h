#ifndef SANDBOX_WEBHOOKS_H
#define SANDBOX_WEBHOOKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "model/signature.h"
#include "sandbox/violations.h"

#define WEBHOOKS_MAX 100
#define WEBHOOKS_URL_MAX 512 /* bytes */

struct scheduled_delivery;
TAILQ_HEAD(scheduled_deliveries, scheduled_delivery);

/* A subscription: the events that a client wants, and the endpoint to deliver them to. */
struct webhook {
        TAILQ_ENTRY(webhook) entry;
        char id[BYTES_UUID_SIZE];
        char *url;
        char **events; /* event filters */
        size_t n_events;
        char *secret;
        struct signature_key *key;
        char *owner; /* the entity whose events are delivered; NULL: any */
        int64_t created_ms;
        int is_removed; /* removal under way: excluded from the state file */
        /*
         * The next two belong to delivery_scheduler.c: deliveries waiting for their turn, and current
         * attempts.
         */
        struct scheduled_deliveries waiting;
        size_t n_in_flight;
};

TAILQ_HEAD(webhooks, webhook);

/**
 * webhooks_new(payload, owner, violations):
 * Create a webhook with a new id from the members url, events and secret. Returns NULL with violations if
 * they are invalid.
 */
struct webhook *webhooks_new(const struct json_value *payload, const char *owner,
                             struct violations *violations) MUST_CHECK;
void webhooks_free(struct webhook *webhook);

/* Return whether the webhook subscribes to an entity's events of a kind. */
int webhooks_wants(const struct webhook *webhook, const char *entity, const char *kind);

struct webhook *webhooks_find(const struct webhooks *webhooks, const char *id);
size_t webhooks_count(const struct webhooks *webhooks);

/* Free all webhooks. */
void webhooks_clear(struct webhooks *webhooks);

/**
 * webhooks_check_url(text, error):
 * Check an endpoint URL: absolute, https (or http to a loopback address or localhost), without user name and
 * fragment. Parsed by libcurl, which delivers. Returns 0, or -1 with the reason.
 */
int webhooks_check_url(const char *text, struct error *error) MUST_CHECK;

#endif
