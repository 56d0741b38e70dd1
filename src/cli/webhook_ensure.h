#ifndef CLI_WEBHOOK_ENSURE_H
#define CLI_WEBHOOK_ENSURE_H

#include <stddef.h>

#include "base/compiler.h"
#include "cli/webhook.h"

/*
 * Makes the wanted webhook the only one at its URL. URL and events decide whether a webhook is right, since
 * the service returns no secrets. The new webhook is registered before the old ones are removed, and they are
 * removed only when the service lists the new one as wanted, so that no event is missed.
 */
struct webhook_ensure {
        struct service *service;
        const char *url;
        char *const *events;
        size_t n_events;
        const char *payload; /* the JSON that registers it */
        int rotates;         /* replace it even if it is right */
        int is_dry;          /* only find out what to do */

        struct webhooks before;                /* at first */
        struct webhooks after;                 /* once it is registered */
        const struct registered_webhook *kept; /* in one of these lists; NULL: none is right */
        int was_added;
        int was_updated;                       /* instead, since the service keeps one webhook for a URL */
        const struct registered_webhook **old; /* to remove */
        size_t n_old;
        size_t n_removed;
};

/**
 * webhook_ensure(ensure, failure):
 * Do it. Set the first group of members, all else to zero. Returns 0, or an exit status with the failure.
 * Call webhook_ensure_clear() in either case.
 */
int webhook_ensure(struct webhook_ensure *ensure, struct service_failure *failure) MUST_CHECK;
void webhook_ensure_clear(struct webhook_ensure *ensure);

#endif
