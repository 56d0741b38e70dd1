#include "cli/subscription_others.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"

#define MAX_WARNED 3

/*
 * Whether a webhook at the URL has an event, which may be a pattern, already. One whose events the service
 * does not show may have it.
 */
static int
is_there(const struct subscription_views *list, const char *url, const char *event)
{
        for (size_t i = 0; i < list->n; i++) {
                const struct subscription_view *view = &list->items[i];

                if (subscription_same_url(view->url, url) &&
                    (!view->shows_events || subscription_shows(view, event)))
                        return 1;
        }
        return 0;
}

/* Return the first requested event that a webhook has, too, and that is new at the URL, or NULL. */
static const char *
find_new(const struct subscription_views *list, const struct subscription_args *args,
         const struct subscription_view *view)
{
        for (size_t i = 0; i < args->n_events; i++) {
                for (size_t k = 0; k < view->n_events; k++) {
                        const char *common = subscription_common_event(args->events[i], view->events[k]);

                        if (common != NULL && !is_there(list, args->url, common))
                                return common;
                }
        }
        return NULL;
}

static void
warn_of(const struct subscription_view *view, const char *event)
{
        char *url = subscription_shown_url(view);

        (void)command_fail(0,
                           "%s has %s, too, at %s: if it leads to the same receiver, each such event is "
                           "published twice",
                           view->id, event, url);
        free(url);
}

void
subscription_others_warn(const struct subscription_views *list, const struct subscription_args *args)
{
        size_t n_warned = 0;

        for (size_t i = 0; i < list->n && n_warned < MAX_WARNED; i++) {
                const struct subscription_view *view = &list->items[i];
                const char *event =
                    subscription_same_url(view->url, args->url) ? NULL : find_new(list, args, view);

                if (event == NULL)
                        continue;
                warn_of(view, event);
                n_warned++;
        }
}
