#include "cli/subscription_ensure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/subscription_others.h"

#define MAX_POSTS 4

static int
is_at_url(const struct subscription_ensure *state, const struct subscription_view *view)
{
        return subscription_same_url(view->url, state->args->url);
}

/* Return whether a webhook equals the requested one, as far as the service shows it. */
static int
is_wanted(const struct subscription_ensure *state, const struct subscription_view *view)
{
        return is_at_url(state, view) &&
               (!view->shows_events ||
                subscription_same_events(view, state->args->events, state->args->n_events));
}

static int
was_before(const struct subscription_ensure *state, const struct subscription_view *view)
{
        for (size_t i = 0; i < state->before.n; i++) {
                if (strcmp(state->before.items[i].id, view->id) == 0)
                        return 1;
        }
        return 0;
}

/*
 * Return less than 0 if a is older than b, more than 0 if it is newer, 0 if unknown. Times cannot be
 * compared as text, because services write them with or without fractions and with any offset.
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
                return strcmp(a->created, b->created);
        return a_fails || b_fails || a_ms == b_ms ? 0 : a_ms < b_ms ? -1 : 1;
}

/*
 * Keep this webhook instead if it is newer, since older ones may have an old secret. If the ages are equal
 * or unknown, the smaller ID wins, so that everybody who runs this at the same time chooses the same one.
 */
static void
prefer(struct subscription_ensure *state, const struct subscription_view *view)
{
        int age = state->kept == NULL ? 1 : compare_ages(view, state->kept);

        if (age > 0 || (age == 0 && strcmp(view->id, state->kept->id) < 0))
                state->kept = view;
}

/* Find an existing webhook that is right. */
static void
find_right_before(struct subscription_ensure *state)
{
        for (size_t i = 0; i < state->before.n && !state->args->rotate; i++) {
                const struct subscription_view *view = &state->before.items[i];

                if (is_wanted(state, view))
                        prefer(state, view);
        }
}

/* Find the new webhook, however the service shows it: by its ID, or as the only new one at the URL. */
static const struct subscription_view *
find_posted(const struct subscription_ensure *state)
{
        const struct subscription_view *found = NULL;
        size_t n_new = 0;

        for (size_t i = 0; i < state->after.n; i++) {
                const struct subscription_view *view = &state->after.items[i];

                if (state->posted_id != NULL && strcmp(view->id, state->posted_id) == 0)
                        return view;
                if (was_before(state, view) || !is_at_url(state, view))
                        continue;
                found = view;
                n_new++;
        }
        return state->posted_id == NULL && n_new == 1 ? found : NULL;
}

static void
warn_unchecked(const struct subscription_ensure *state)
{
        const struct subscription_view *view = state->kept;

        if (view == NULL || view->shows_events)
                return;
        fprintf(stderr, "gatepost %s: the service does not show the events of ", command_name());
        text_print(stderr, view->id, strlen(view->id));
        fprintf(stderr, ", so they were not checked; use --rotate to replace it\n");
}

/* List again, to find the new webhook. Returns 0, or an exit status after printing why. */
static int
find_right_after(struct subscription_ensure *state)
{
        int status;

        subscription_views_clear(&state->after);
        status = subscription_list(state->client, &state->after);
        for (size_t i = 0; i < state->after.n && status == 0; i++) {
                const struct subscription_view *view = &state->after.items[i];

                if (!was_before(state, view) && is_wanted(state, view))
                        prefer(state, view);
        }
        if (status == 0 && state->kept == NULL && state->was_posted)
                state->kept = find_posted(state);
        return status;
}

/* Note the ID of the new webhook, if the answer has it. */
static void
note_posted(struct subscription_ensure *state, const struct api_client_answer *answer)
{
        struct subscription_views views;

        state->was_posted = 1;
        service_answer_one(answer->body, answer->len, &views);
        if (views.n == 1)
                state->posted_id = mem_strdup(views.items[0].id);
        subscription_views_clear(&views);
}

/* Register once and check the list. Returns 0, -1 to try again, or an exit status after printing why. */
static int
add_once(struct subscription_ensure *state, const char *payload, size_t len, size_t n_before)
{
        struct api_client_answer answer = {.n_calls = n_before};
        int status = 0, has_succeeded;

        api_client_call(state->client, "POST", "/webhooks", payload, len, &answer);
        has_succeeded = api_client_succeeded(&answer);
        if (has_succeeded)
                note_posted(state, &answer);
        else if (api_client_may_recover(&answer))
                api_client_pause(answer.n_calls);
        else
                status = api_client_report(command_name(), &answer);
        if (status == 0)
                status = find_right_after(state);
        if (status == 0 && state->kept == NULL && has_succeeded) {
                fprintf(stderr,
                        "gatepost %s: the service has registered the webhook, but does not list it; "
                        "nothing was removed\n",
                        command_name());
                status = EX_DATAERR;
        } else if (status == 0 && state->kept == NULL) {
                status = answer.n_calls < MAX_POSTS ? -1 : api_client_report(command_name(), &answer);
        }
        api_client_answer_clear(&answer);
        return status;
}

/* Register until the list shows it. Returns 0, or an exit status after printing why. */
static int
add(struct subscription_ensure *state, const char *payload, size_t len)
{
        size_t n_posts = 0;
        int status;

        do
                status = add_once(state, payload, len, n_posts++);
        while (status < 0);
        state->was_added = status == 0;
        state->was_updated = status == 0 && was_before(state, state->kept);
        return status;
}

/*
 * Mark a webhook for removal, once, unless it is kept. A service may list an ID twice, or reuse one for the
 * same URL.
 */
static void
add_old(struct subscription_ensure *state, const struct subscription_view *view)
{
        if (state->kept != NULL && strcmp(view->id, state->kept->id) == 0)
                return;
        for (size_t i = 0; i < state->n_old; i++) {
                if (strcmp(view->id, state->old[i]->id) == 0)
                        return;
        }
        state->old[state->n_old++] = view;
}

/* Return a requested event that an old webhook has and the new one does not show, or NULL. */
static const char *
find_lacking(const struct subscription_ensure *state, const struct subscription_view *old)
{
        for (size_t i = 0; i < state->args->n_events; i++) {
                for (size_t k = 0; k < old->n_events; k++) {
                        const char *common =
                            subscription_common_event(state->args->events[i], old->events[k]);

                        if (common != NULL && !subscription_shows(state->kept, common))
                                return common;
                }
        }
        return NULL;
}

/* Return whether removing an old webhook would lose requested events, after printing which. */
static int
is_needed(const struct subscription_ensure *state, const struct subscription_view *old)
{
        const struct subscription_view *right = state->kept;
        const char *lacking;

        if (right == NULL || is_wanted(state, right) || strcmp(old->id, right->id) == 0)
                return 0;
        lacking = find_lacking(state, old);
        if (lacking == NULL)
                return 0;
        fprintf(stderr, "gatepost %s: ", command_name());
        text_print(stderr, old->id, strlen(old->id));
        fputs(" stays: it has ", stderr);
        text_print(stderr, lacking, strlen(lacking));
        fputs(", which ", stderr);
        text_print(stderr, right->id, strlen(right->id));
        fputs(" lacks\n", stderr);
        return 1;
}

/* Find the webhooks to remove: the old ones at the URL, and duplicates from repeated registering. */
static void
find_old(struct subscription_ensure *state)
{
        state->old = mem_alloc((state->before.n + state->after.n + 1) * sizeof(*state->old));
        for (size_t i = 0; i < state->before.n; i++) {
                const struct subscription_view *view = &state->before.items[i];

                /* If the new one is useless, it is unknown which old one has the newest secret. */
                if (is_at_url(state, view) && !is_needed(state, view) && state->useless == NULL)
                        add_old(state, view);
        }
        for (size_t i = 0; i < state->after.n; i++) {
                const struct subscription_view *view = &state->after.items[i];

                if (!was_before(state, view) && (view == state->useless || is_wanted(state, view)))
                        add_old(state, view);
        }
}

/* Return an old webhook that the service shows exactly like the new one, or NULL. */
static const struct subscription_view *
find_twin(const struct subscription_ensure *state)
{
        const struct subscription_view *new = state->kept;

        for (size_t i = 0; i < state->before.n; i++) {
                const struct subscription_view *view = &state->before.items[i];

                if (subscription_same_url(view->url, new->url) &&
                    subscription_same_events(view, new->events, new->n_events))
                        return view;
        }
        return NULL;
}

static void
warn_different(const struct subscription_ensure *state)
{
        const struct subscription_view *view = state->kept;
        char *url = subscription_shown_url(view);

        fprintf(stderr,
                "gatepost %s: the service shows the webhook differently than requested: ", command_name());
        text_print(stderr, url, strlen(url));
        free(url);
        for (size_t i = 0; i < view->n_events; i++) {
                fputc(i == 0 ? ' ' : ',', stderr);
                text_print(stderr, view->events[i], strlen(view->events[i]));
        }
        fprintf(
            stderr,
            "%s\n    If this is right, pass it as --url and --events; if not, ask the service's support\n",
            view->n_events == 0 ? " without events" : "");
}

/*
 * Check that the service shows the new webhook as requested. Returns 0, or an exit status after printing
 * the difference.
 */
static int
check_added(struct subscription_ensure *state)
{
        const struct subscription_view *twin;

        if (is_wanted(state, state->kept))
                return 0;
        warn_different(state);
        twin = state->args->rotate ? NULL : find_twin(state);
        if (twin != NULL) {
                state->useless = state->kept;
                state->kept = twin;
                state->was_added = 0;
        }
        return EX_DATAERR;
}

static int
remove_old(struct subscription_ensure *state)
{
        for (; state->n_removed < state->n_old; state->n_removed++) {
                int was_there,
                    status = subscription_remove(state->client, state->old[state->n_removed]->id, &was_there);

                if (status != 0) {
                        fprintf(stderr,
                                "    The webhook is registered; run ensure again%s to remove the old ones\n",
                                state->args->rotate ? ", with --rotate," : "");
                        return status;
                }
        }
        return 0;
}

int
subscription_ensure(struct subscription_ensure *state, const char *payload, size_t len)
{
        int status = subscription_list(state->client, &state->before), differs = 0;

        if (status != 0)
                return status;
        find_right_before(state);
        warn_unchecked(state);
        subscription_others_warn(&state->before, state->args);
        if (state->kept == NULL && !state->args->dry_run) {
                status = add(state, payload, len);
                if (status != 0)
                        return status;
                differs = check_added(state);
        }
        find_old(state);
        if (!state->args->dry_run)
                status = remove_old(state);
        return status != 0 ? status : differs;
}

void
subscription_ensure_clear(struct subscription_ensure *state)
{
        free(state->old);
        free(state->posted_id);
        subscription_views_clear(&state->before);
        subscription_views_clear(&state->after);
}
