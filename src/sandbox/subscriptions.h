#ifndef SANDBOX_SUBSCRIPTIONS_H
#define SANDBOX_SUBSCRIPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/json_tree.h"
#include "model/signature.h"
#include "sandbox/violations.h"

#define SUBSCRIPTIONS_MAX 100

struct delivery_job;
TAILQ_HEAD(delivery_jobs, delivery_job);

/* Where events go to, and which. */
struct subscription {
        TAILQ_ENTRY(subscription) entry;
        char id[BYTES_UUID_SIZE];
        char *url;
        char **events; /* kinds, or "*" alone */
        size_t n_events;
        char *secret;
        struct signature_key *key;
        char *owner; /* the entity whose events it gets; NULL: those of all */
        int64_t created_ms;
        int is_removed;               /* it is being removed: nothing of it is saved */
        struct delivery_jobs waiting; /* courier.c's: deliveries that wait for their turn */
        size_t n_under_way;           /* likewise: attempts being made */
};

TAILQ_HEAD(subscriptions, subscription);

/**
 * subscription_new(payload, owner, violations):
 * A subscription with a new id, of the members url, events and secret. Returns NULL with violations when it cannot be.
 */
struct subscription *subscription_new(const struct json_value *payload, const char *owner,
                                      struct violations *violations) MUST_CHECK;
void subscription_free(struct subscription *subscription);

/* Whether it gets an entity's events of a kind. */
int subscription_wants(const struct subscription *subscription, const char *entity, const char *kind);

struct subscription *subscriptions_find(const struct subscriptions *subscriptions, const char *id);
size_t subscriptions_count(const struct subscriptions *subscriptions);

/* Release all of them. */
void subscriptions_clear(struct subscriptions *subscriptions);

#endif
