#include "cli/ensuring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/kind_filter.h"
#include "cli/service_refusal.h"
#include "cli/subscription_calls.h"

#define MAX_POSTS 4

static int
is_at_url(const struct ensuring *ensuring, const struct subscription_view *view)
{
        return subscription_calls_same_url(view->url, ensuring->args->url);
}

/* Whether it is as it was asked for, as far as the service shows it. */
static int
is_wanted(const struct ensuring *ensuring, const struct subscription_view *view)
{
        return is_at_url(ensuring, view) &&
               (!view->shows_events ||
                subscription_calls_same_events(view, ensuring->args->events, ensuring->args->n_events));
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

/*
 * Returns below 0, 0 or above 0 when a is older than b, neither can be told, or newer. Services write times with and without
 * fractions, of any number of digits, and with the offset of their place, so that they do not sort as text.
 */
static int
compare_ages(const struct subscription_view *a, const struct subscription_view *b)
{
        int64_t a_ms, b_ms;
        int a_fails, b_fails;

        if (a->created == NULL || b->created == NULL)
                return 0;
        a_fails = clock_parse_zoned_ms(a->created, strlen(a->created), &a_ms);
        b_fails = clock_parse_zoned_ms(b->created, strlen(b->created), &b_ms);
        if (a_fails && b_fails)
                return strcmp(a->created, b->created); /* the best that can be done */
        return a_fails || b_fails || a_ms == b_ms ? 0 : a_ms < b_ms ? -1 : 1;
}

/*
 * Of several that are right the newest stays, for the others may have a secret that was replaced; of those that are as old, or
 * whose age the service does not show, the one with the least ID. Whoever looks at the same time chooses the same.
 */
static void
prefer(struct ensuring *ensuring, const struct subscription_view *view)
{
        int age = ensuring->right == NULL ? 1 : compare_ages(view, ensuring->right);

        if (age > 0 || (age == 0 && strcmp(view->id, ensuring->right->id) < 0))
                ensuring->right = view;
}

/* Find what was there before and is right. */
static void
find_right_before(struct ensuring *ensuring)
{
        for (size_t i = 0; i < ensuring->before.n && !ensuring->args->rotates; i++) {
                const struct subscription_view *view = &ensuring->before.items[i];

                if (is_wanted(ensuring, view))
                        prefer(ensuring, view);
        }
}

/* What the service may show in another way than it was registered: by its ID, or as the only one that is new at the URL. */
static const struct subscription_view *
find_posted(const struct ensuring *ensuring)
{
        const struct subscription_view *found = NULL;
        size_t n_new = 0;

        for (size_t i = 0; i < ensuring->after.n; i++) {
                const struct subscription_view *view = &ensuring->after.items[i];

                if (ensuring->posted_id != NULL && strcmp(view->id, ensuring->posted_id) == 0)
                        return view;
                if (was_before(ensuring, view) || !is_at_url(ensuring, view))
                        continue;
                found = view;
                n_new++;
        }
        return ensuring->posted_id == NULL && n_new == 1 ? found : NULL;
}

static void
tell_unknown(const struct ensuring *ensuring)
{
        const struct subscription_view *view = ensuring->right;

        if (view == NULL || view->shows_events)
                return;
        fprintf(stderr, "gatepost %s: the service does not show the events of ", ensuring->command);
        text_print(stderr, view->id, strlen(view->id));
        fprintf(stderr, ", so whether they are right is not known; --rotate replaces it\n");
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

                if (!was_before(ensuring, view) && is_wanted(ensuring, view))
                        prefer(ensuring, view);
        }
        if (status == 0 && ensuring->right == NULL && ensuring->was_posted)
                ensuring->right = find_posted(ensuring);
        return status;
}

/* What the service said of a registering that succeeded; it may not show what it has registered. */
static void
note_posted(struct ensuring *ensuring, const struct service_answer *answer)
{
        struct subscription_views views;

        ensuring->was_posted = 1;
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
        ensuring->was_updated = status == 0 && was_before(ensuring, ensuring->right);
        return status;
}

/* Add a subscription to those to remove, unless it is the one to keep: a service may list an ID twice, or register by URL. */
static void
add_old(struct ensuring *ensuring, const struct subscription_view *view)
{
        if (ensuring->right != NULL && strcmp(view->id, ensuring->right->id) == 0)
                return;
        for (size_t i = 0; i < ensuring->n_old; i++) {
                if (strcmp(view->id, ensuring->old[i]->id) == 0)
                        return;
        }
        ensuring->old[ensuring->n_old++] = view;
}

/* Whether events that are shown include all that one event means, which may be a pattern. */
static int
shows(const struct subscription_view *view, const char *event)
{
        for (size_t i = 0; i < view->n_events; i++) {
                if (kind_filter_matches(view->events[i], event, strlen(event)))
                        return 1;
        }
        return 0;
}

/* The narrower of two events, each of which may be a pattern, where it is within the other; else NULL: nothing is in both. */
static const char *
find_common(const char *one, const char *other)
{
        if (kind_filter_matches(one, other, strlen(other)))
                return other;
        return kind_filter_matches(other, one, strlen(one)) ? one : NULL;
}

/* Events that were asked for and that an old one has, but that the new one does not show; NULL when there are none. */
static const char *
find_lacking(const struct ensuring *ensuring, const struct subscription_view *old)
{
        for (size_t i = 0; i < ensuring->args->n_events; i++) {
                for (size_t k = 0; k < old->n_events; k++) {
                        const char *common = find_common(ensuring->args->events[i], old->events[k]);

                        if (common != NULL && !shows(ensuring->right, common))
                                return common;
                }
        }
        return NULL;
}

/* Whether to remove an old one would lose events that were asked for; says so. */
static int
is_needed(const struct ensuring *ensuring, const struct subscription_view *old)
{
        const struct subscription_view *right = ensuring->right;
        const char *lacking;

        if (right == NULL || is_wanted(ensuring, right) || strcmp(old->id, right->id) == 0)
                return 0;
        lacking = find_lacking(ensuring, old);
        if (lacking == NULL)
                return 0;
        fprintf(stderr, "gatepost %s: ", ensuring->command);
        text_print(stderr, old->id, strlen(old->id));
        fputs(" stays: it has ", stderr);
        text_print(stderr, lacking, strlen(lacking));
        fputs(", which ", stderr);
        text_print(stderr, right->id, strlen(right->id));
        fputs(" lacks\n", stderr);
        return 1;
}

/* What is to go: what there was at the URL, and what came of registering that was done twice. */
static void
find_old(struct ensuring *ensuring)
{
        ensuring->old = mem_alloc((ensuring->before.n + ensuring->after.n + 1) * sizeof(*ensuring->old));
        for (size_t i = 0; i < ensuring->before.n; i++) {
                const struct subscription_view *view = &ensuring->before.items[i];

                /* Where registering was in vain, nobody can tell which old one has the newest secret. */
                if (is_at_url(ensuring, view) && !is_needed(ensuring, view) && ensuring->vain == NULL)
                        add_old(ensuring, view);
        }
        for (size_t i = 0; i < ensuring->after.n; i++) {
                const struct subscription_view *view = &ensuring->after.items[i];

                if (!was_before(ensuring, view) && (view == ensuring->vain || is_wanted(ensuring, view)))
                        add_old(ensuring, view);
        }
}

/* An old one that the service shows just as it shows what was registered, or NULL. */
static const struct subscription_view *
find_twin(const struct ensuring *ensuring)
{
        const struct subscription_view *new = ensuring->right;

        for (size_t i = 0; i < ensuring->before.n; i++) {
                const struct subscription_view *view = &ensuring->before.items[i];

                if (subscription_calls_same_url(view->url, new->url) &&
                    subscription_calls_same_events(view, new->events, new->n_events))
                        return view;
        }
        return NULL;
}

static void
tell_difference(const struct ensuring *ensuring)
{
        const struct subscription_view *view = ensuring->right;

        fprintf(stderr, "gatepost %s: the service shows the webhook otherwise than it was asked for: ",
                ensuring->command);
        text_print(stderr, view->url, strlen(view->url));
        for (size_t i = 0; i < view->n_events; i++) {
                fputc(i == 0 ? ' ' : ',', stderr);
                text_print(stderr, view->events[i], strlen(view->events[i]));
        }
        fprintf(stderr,
                "%s\n    If that is what you want, give it as --url and --events; else ask the service why\n",
                view->n_events == 0 ? " without events" : "");
}

/* What was registered is shown; as it was asked for? Returns 0, or an exit status after saying that it is not. */
static int
check_added(struct ensuring *ensuring)
{
        const struct subscription_view *twin;

        if (is_wanted(ensuring, ensuring->right))
                return 0;
        tell_difference(ensuring);
        twin = ensuring->args->rotates ? NULL : find_twin(ensuring);
        if (twin != NULL) {
                ensuring->vain = ensuring->right;
                ensuring->right = twin;
                ensuring->was_added = 0;
        }
        return EX_DATAERR;
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
                                "    What was wanted is registered; ensure again%s to remove what is not\n",
                                ensuring->args->rotates ? ", with --rotate," : "");
                        return status;
                }
        }
        return 0;
}

int
ensuring_run(struct ensuring *ensuring, const char *payload, size_t len)
{
        int status = subscription_calls_list(ensuring->service, ensuring->command, &ensuring->before),
            differs = 0;

        if (status != 0)
                return status;
        find_right_before(ensuring);
        tell_unknown(ensuring);
        if (ensuring->right == NULL && !ensuring->args->is_dry) {
                status = add(ensuring, payload, len);
                if (status != 0)
                        return status;
                differs = check_added(ensuring);
        }
        find_old(ensuring);
        if (!ensuring->args->is_dry)
                status = remove_old(ensuring);
        return status != 0 ? status : differs;
}

void
ensuring_clear(struct ensuring *ensuring)
{
        free(ensuring->old);
        free(ensuring->posted_id);
        subscription_views_clear(&ensuring->before);
        subscription_views_clear(&ensuring->after);
}
