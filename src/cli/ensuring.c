#include "cli/ensuring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/service_refusal.h"
#include "cli/subscription_calls.h"

#define MAX_POSTS 4

static int
is_at_url(const struct ensuring *ensuring, const struct subscription_view *view)
{
        return subscription_calls_same_url(view->url, ensuring->args->url);
}

static int
was_before(const struct ensuring *ensuring, const struct subscription_view *view)
{
        for (size_t i = 0; i < ensuring->before.n; i++) {
                if (strcmp(ensuring->before.items[i].id, view->id) == 0)
                        return 1;
        }
        return 0;
}

/* Of several that are right the one with the least ID stays: whoever looks at the same time chooses the same. */
static void
prefer(struct ensuring *ensuring, const struct subscription_view *view)
{
        if (ensuring->right == NULL || strcmp(view->id, ensuring->right->id) < 0)
                ensuring->right = view;
}

/* Find what was there before and is right. */
static void
find_right_before(struct ensuring *ensuring)
{
        for (size_t i = 0; i < ensuring->before.n && !ensuring->args->rotates; i++) {
                const struct subscription_view *view = &ensuring->before.items[i];

                if (is_at_url(ensuring, view) && subscription_calls_same_events(view, ensuring->args))
                        prefer(ensuring, view);
        }
}

/* Look whether it has been registered. Returns 0, or an exit status after saying why. */
static int
find_right_after(struct ensuring *ensuring)
{
        int status;

        subscription_views_clear(&ensuring->after);
        status = subscription_calls_list(ensuring->service, ensuring->command, &ensuring->after);
        for (size_t i = 0; i < ensuring->after.n && status == 0; i++) {
                const struct subscription_view *view = &ensuring->after.items[i];

                if (!was_before(ensuring, view) && is_at_url(ensuring, view) &&
                    subscription_calls_same_events(view, ensuring->args))
                        prefer(ensuring, view);
        }
        /* The service may write URL or events in another way. */
        for (size_t i = 0; i < ensuring->after.n && ensuring->right == NULL && ensuring->posted_id != NULL;
             i++) {
                if (strcmp(ensuring->after.items[i].id, ensuring->posted_id) == 0)
                        ensuring->right = &ensuring->after.items[i];
        }
        return status;
}

/* What the service said of a registering that succeeded; it may not show what it has registered. */
static void
note_posted(struct ensuring *ensuring, const struct service_answer *answer)
{
        struct subscription_views views;

        service_answer_one(answer->body, answer->len, &views);
        if (views.n == 1)
                ensuring->posted_id = mem_strdup(views.items[0].id);
        subscription_views_clear(&views);
}

/* Register once, and look what came of it. Returns 0, -1 when it may be tried again, or an exit status after saying why not. */
static int
add_once(struct ensuring *ensuring, const char *payload, size_t len, size_t n_before)
{
        struct service_answer answer = {.n_calls = n_before};
        int status = 0, has_succeeded;

        service_call(ensuring->service, "POST", "/webhooks", payload, len, &answer);
        has_succeeded = service_succeeded(&answer);
        if (has_succeeded)
                note_posted(ensuring, &answer);
        else if (service_may_recover(&answer))
                service_pause(answer.n_calls);
        else
                status = service_refusal(ensuring->command, &answer);
        if (status == 0)
                status = find_right_after(ensuring);
        if (status == 0 && ensuring->right == NULL && has_succeeded) {
                fprintf(
                    stderr,
                    "gatepost %s: the service says that it has registered the webhook, but does not list it; "
                    "nothing was removed\n",
                    ensuring->command);
                status = EX_DATAERR;
        } else if (status == 0 && ensuring->right == NULL) {
                status = answer.n_calls < MAX_POSTS ? -1 : service_refusal(ensuring->command, &answer);
        }
        service_answer_clear(&answer);
        return status;
}

/* Register it, and see that it is there. Returns 0, or an exit status after saying why. */
static int
add(struct ensuring *ensuring, const char *payload, size_t len)
{
        size_t n_posts = 0;
        int status;

        do
                status = add_once(ensuring, payload, len, n_posts++);
        while (status < 0);
        ensuring->was_added = status == 0;
        return status;
}

/* What is to go: what there was at the URL, and what came of registering that was done twice. */
static void
find_old(struct ensuring *ensuring)
{
        ensuring->old = mem_alloc((ensuring->before.n + ensuring->after.n + 1) * sizeof(*ensuring->old));
        for (size_t i = 0; i < ensuring->before.n; i++) {
                const struct subscription_view *view = &ensuring->before.items[i];

                if (is_at_url(ensuring, view) && view != ensuring->right)
                        ensuring->old[ensuring->n_old++] = view;
        }
        for (size_t i = 0; i < ensuring->after.n; i++) {
                const struct subscription_view *view = &ensuring->after.items[i];

                if (!was_before(ensuring, view) && is_at_url(ensuring, view) && view != ensuring->right &&
                    subscription_calls_same_events(view, ensuring->args))
                        ensuring->old[ensuring->n_old++] = view;
        }
}

static int
remove_old(struct ensuring *ensuring)
{
        for (; ensuring->n_removed < ensuring->n_old; ensuring->n_removed++) {
                int was_there,
                    status = subscription_calls_remove(ensuring->service, ensuring->command,
                                                       ensuring->old[ensuring->n_removed]->id, &was_there);

                if (status != 0) {
                        fprintf(stderr,
                                "    What was wanted is registered; ensure again to remove what is not\n");
                        return status;
                }
        }
        return 0;
}

int
ensuring_run(struct ensuring *ensuring, const char *payload, size_t len)
{
        int status = subscription_calls_list(ensuring->service, ensuring->command, &ensuring->before);

        if (status != 0)
                return status;
        find_right_before(ensuring);
        if (ensuring->right == NULL && !ensuring->args->is_dry)
                status = add(ensuring, payload, len);
        if (status != 0)
                return status;
        find_old(ensuring);
        return ensuring->args->is_dry ? 0 : remove_old(ensuring);
}

void
ensuring_clear(struct ensuring *ensuring)
{
        free(ensuring->old);
        free(ensuring->posted_id);
        subscription_views_clear(&ensuring->before);
        subscription_views_clear(&ensuring->after);
}
