#ifndef CLI_SUBSCRIPTION_ENSURE_H
#define CLI_SUBSCRIPTION_ENSURE_H

#include <stddef.h>

#include "base/compiler.h"
#include "cli/subscription.h"

/*
 * Make the requested webhook the only one at its URL. The new webhook is registered before the old ones are
 * removed, so that no event is missed; they are removed only when the list shows the new one. Before
 * registering is repeated, the list is read to see whether it succeeded. Webhooks that others register
 * meanwhile, with other events, are left alone.
 *
 * The service does not document how it shows webhooks. If it shows no events, a webhook at the URL is
 * considered right. If it shows the new webhook differently than requested, but equal to an old one, the
 * old one is kept, since replacing it would change nothing. An old one is also kept if it has requested
 * events that the new one does not show, since nothing else may deliver them.
 */
struct subscription_ensure {
        struct api_client *client;
        const struct subscription_args *args;
        struct subscription_views before; /* the list at first */
        struct subscription_views after;  /* the list as read last */
        char *posted_id;                  /* ID of the new webhook, if the service has returned it */
        /* The webhook to keep, in before or after; NULL: not registered yet. */
        const struct subscription_view *kept;
        int was_added;
        int was_updated; /* instead, since the service keeps one webhook for a URL */
        int was_posted;  /* the service has accepted the new webhook */
        /* The new webhook if it is no better than an old one, else NULL. */
        const struct subscription_view *useless;
        const struct subscription_view **old; /* to remove, in before or after */
        size_t n_old;
        size_t n_removed;
};

/**
 * subscription_ensure(state, payload, len):
 * Reconcile, or for a dry run only find out how. Set client and args, all else to zero; payload is
 * the JSON that registers the webhook. Returns 0, or an exit status after printing why; call
 * subscription_ensure_clear() in either case.
 */
int subscription_ensure(struct subscription_ensure *state, const char *payload, size_t len) MUST_CHECK;
void subscription_ensure_clear(struct subscription_ensure *state);

#endif
