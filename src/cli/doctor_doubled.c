#include "cli/doctor_webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/uri.h"
#include "cli/subscription.h"

#define COMMON_SIZE 300
#define PLAIN_MAX 250

/* Whether a webhook has all events of another one, so that nothing is missed without that. */
static int
has_events_of(const struct subscription_view *view, const struct subscription_view *other)
{
        for (size_t i = 0; i < other->n_events; i++) {
                if (!subscription_shows(view, other->events[i]))
                        return 0;
        }
        return 1;
}

static void
append(char *text, size_t size, const char *event)
{
        size_t len = strlen(text);

        (void)snprintf(text + len, size - len, "%s%s", len == 0 ? "" : ",", event);
}

/* List the events that two webhooks have in common: of a family and one of its kinds, the kind. */
static void
list_common(const struct subscription_view *a, const struct subscription_view *b, char *text, size_t size)
{
        text[0] = '\0';
        for (size_t i = 0; i < a->n_events; i++) {
                for (size_t k = 0; k < b->n_events; k++) {
                        const char *common = subscription_common_event(a->events[i], b->events[k]);

                        if (common != NULL)
                                append(text, size, common);
                }
        }
}

/* Webhooks of a source. */
struct group {
        const struct config_source *source;
        const struct subscription_view *const *views;
        size_t n;
};

/* Whether an event of a webhook need not be listed: an earlier one, or a family, covers it. */
static int
is_covered(const struct group *group, size_t v, size_t e, const char *url)
{
        const char *event = group->views[v]->events[e];

        for (size_t i = 0; i < group->n; i++) {
                const struct subscription_view *view = group->views[i];

                for (size_t k = 0; k < view->n_events && subscription_same_url(view->url, url); k++) {
                        int is_before = i < v || (i == v && k < e);

                        if (subscription_covers(view->events[k], event) &&
                            (is_before || !subscription_covers(event, view->events[k])))
                                return 1;
                }
        }
        return 0;
}

/* List all events of the webhooks at a URL, each once. The caller frees it. */
static char *
list_all(const struct group *group, const char *url)
{
        char *all = mem_strdup("");

        for (size_t v = 0; v < group->n; v++) {
                const struct subscription_view *view = group->views[v];

                for (size_t e = 0; e < view->n_events && subscription_same_url(view->url, url); e++) {
                        char *longer;

                        if (is_covered(group, v, e, url))
                                continue;
                        longer = mem_printf("%s%s%s", all, *all == '\0' ? "" : ",", view->events[e]);
                        free(all);
                        all = longer;
                }
        }
        return all;
}

/* Return a text of the service if it can stand in a command as it is, or what to replace. */
static const char *
for_command(const char *text, const char *otherwise)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:/,*";
        size_t len = strlen(text);

        return len <= PLAIN_MAX && strspn(text, plain) == len ? text : otherwise;
}

char *
doctor_doubled_ids(const struct doctor *doctor, const struct config_source *source)
{
        return source->n_webhook_ids == 0
                   ? mem_strdup("")
                   : mem_printf(
                         "; then add webhook_id = ID, with the id that it prints, to [source %s] of %s, "
                         "and at once: systemctl reload @UNIT@; also on all other receivers with this source",
                         source->name, doctor->file);
}

/*
 * Return the command that replaces all webhooks at a URL by one with all their events and the secret of the
 * source, which it registers before it removes them. The caller frees it.
 */
static char *
explain_merging(const struct doctor *doctor, const struct group *group, const char *url)
{
        const struct config_source *source = group->source;
        char *all = list_all(group, url), *ids = doctor_doubled_ids(doctor, source), *command;

        command =
            mem_printf("@GATEPOST@ subscriptions ensure --rotate --url %s --events '%s' --secret-file %s%s",
                       for_command(url, "URL"), for_command(all, "LIST"),
                       source->n_secret_files == 1 && source->n_keys == 1 ? source->secret_files[0].path
                                                                          : "FILE",
                       ids);
        free(ids);
        free(all);
        return command;
}

/* Warn of two webhooks at one URL that have events in common. */
static void
warn_of_pair(struct doctor *doctor, const struct group *group, const struct subscription_view *a,
             const struct subscription_view *b, const char *common)
{
        /* Of two with the same events, the first may go: then not both of a chain are named. */
        const struct subscription_view *spare = has_events_of(b, a) ? a : has_events_of(a, b) ? b : NULL;
        const struct subscription_view *kept = spare == a ? b : a;
        char *url = uri_hide_secrets(b->url), *merging = explain_merging(doctor, group, b->url), *advice;

        if (spare != NULL)
                advice = mem_printf(
                    "%.64s has all events of %.64s: if it has the secret of the source%s, @GATEPOST@ "
                    "subscriptions remove %.64s; if not, %s",
                    kept->id, spare->id,
                    group->source->n_webhook_ids == 0 ? ""
                                                      : ", and all receivers with this source list its id",
                    for_command(spare->id, "ID"), merging);
        else
                advice = mem_printf(
                    "neither has all events of the other, so remove neither before one webhook has "
                    "all, and the secret of the source: %s",
                    merging);
        doctor_warn(
            doctor,
            "webhooks %.64s and %.64s both deliver %s to %.300s: each such event is published twice; %s",
            a->id, b->id, common, url, advice);
        free(advice);
        free(merging);
        free(url);
}

/* Note that two webhooks may deliver the same events, which depends on what this account does not show. */
static void
note_pair(struct doctor *doctor, const struct subscription_view *a, const struct subscription_view *b,
          const char *common)
{
        char *one = uri_hide_secrets(a->url), *other = uri_hide_secrets(b->url);

        if (*common != '\0')
                doctor_note(
                    doctor,
                    "webhooks %.64s and %.64s both deliver %s: to %.300s and to %.300s; if both lead here, "
                    "each such event is published twice",
                    a->id, b->id, common, one, other);
        else
                doctor_note(
                    doctor,
                    "webhooks %.64s and %.64s both deliver to %.300s, and the service does not show the "
                    "events of both: what both have is published twice",
                    a->id, b->id, other);
        free(one);
        free(other);
}

/* Compare a webhook with those before it. One note is enough: more say nothing that it does not. */
static void
check_one(struct doctor *doctor, const struct group *group, size_t i)
{
        const struct subscription_view *view = group->views[i];
        int is_noted = 0;

        for (size_t k = 0; k < i; k++) {
                const struct subscription_view *other = group->views[k];
                int is_at_url = subscription_same_url(other->url, view->url);
                char common[COMMON_SIZE];

                list_common(other, view, common, sizeof(common));
                if (is_at_url ? *common == '\0' && other->shows_events && view->shows_events
                              : *common == '\0' || is_noted)
                        continue;
                doctor_begin(doctor, "webhook", "[source %s]", group->source->name);
                if (is_at_url && *common != '\0') {
                        warn_of_pair(doctor, group, other, view, common);
                } else {
                        note_pair(doctor, other, view, common);
                        is_noted = 1;
                }
        }
}

void
doctor_doubled_check(struct doctor *doctor, const struct config_source *source,
                     const struct subscription_view *const *views, size_t n)
{
        struct group group = {.source = source, .views = views, .n = n};

        for (size_t i = 1; i < n; i++)
                check_one(doctor, &group, i);
}

int
doctor_doubled_note(struct doctor *doctor, const struct config_source *source,
                    const struct subscription_view *const *views, size_t n,
                    const struct subscription_view *stray)
{
        char common[COMMON_SIZE] = "", *url;
        size_t i = 0;

        for (; i < n && *common == '\0'; i++)
                list_common(views[i], stray, common, sizeof(common));
        if (*common == '\0')
                return 0;
        url = uri_hide_secrets(stray->url);
        doctor_begin(doctor, "webhook", "[source %s]", source->name);
        doctor_note(
            doctor,
            "webhooks %.64s and %.64s both deliver %s, and the path of %.300s leads to no source: if a "
            "proxy changes it, and leads that here, too, each such event is published twice",
            views[i - 1]->id, stray->id, common, url);
        free(url);
        return 1;
}
