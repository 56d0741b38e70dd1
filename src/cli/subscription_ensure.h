#ifndef CLI_SUBSCRIPTION_ENSURE_H
#define CLI_SUBSCRIPTION_ENSURE_H

#include <stddef.h>

#include "base/compiler.h"
#include "cli/subscription.h"

/*
 * The new subscription is registered before the old ones are removed, so that no event is missed between; and only once the
 * list shows it. Registering cannot be repeated blindly: before it is tried again, the list tells whether it was done after
 * all. What others register at the same time for the same URL with other events is left alone.
 *
 * The service does not document how it shows what it has. Where it shows no events, what is at the URL is taken for right. Where
 * it shows others than were registered, and shows an old one just so, the old one stays: to replace it changes nothing. An old
 * one stays, too, if it has events that were asked for and that the new one does not show: nothing else may deliver them.
 */
struct subscription_ensure {
        struct api_client *client;
        const char *command;
        const struct subscription_args *args;
        struct subscription_views before; /* what there was */
        struct subscription_views after;  /* what there is, the last time that it was asked for */
        char *posted_id;                  /* what the service said that it has registered; NULL: nothing */
        const struct subscription_view *kept; /* what is to stay, in before or after; NULL: not yet there */
        int was_added;
        int was_updated; /* by registering, which left it its ID: the service keeps one for a URL */
        int was_posted;  /* the service said that it has registered it */
        const struct subscription_view
            *useless; /* what was registered, and is no better than an old one; NULL: nothing */
        const struct subscription_view **old; /* what is to go, in before or after */
        size_t n_old;
        size_t n_removed;
};

/**
 * subscription_ensure(state, payload, len):
 * Do what there is to do, or for a dry run find out. service, command and args must be set, all else zero; payload is the JSON
 * that registers the subscription. Returns 0, or an exit status after saying why it ended early; subscription_ensure_clear() in either case.
 */
int subscription_ensure(struct subscription_ensure *state, const char *payload, size_t len) MUST_CHECK;
void subscription_ensure_clear(struct subscription_ensure *state);

#endif
