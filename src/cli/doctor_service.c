#include "cli/doctor_webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "base/uri.h"
#include "cli/api_client.h"
#include "cli/doctor_daemon.h"
#include "cli/receiver_url.h"
#include "cli/status.h"
#include "cli/subscription.h"

/* The service's API: the key, and the webhooks that lead here. */

#define TIMEOUT_MS 10000
#define LISTED_MAX 3

static void
list_events(const struct subscription_view *view, char *text, size_t size)
{
        size_t len = 0;

        text[0] = '\0';
        for (size_t i = 0; i < view->n_events && len + 1 < size; i++) {
                (void)snprintf(text + len, size - len, "%s%s", i == 0 ? "" : ",", view->events[i]);
                len = strlen(text);
        }
}

/* Whether a webhook leads to a source by the path of its URL; NULL: to none. */
static int
leads_to(const struct doctor *doctor, const struct config_source *source,
         const struct subscription_view *view)
{
        return view->url != NULL && receiver_url_source(doctor->config, view->url) == source;
}

/* Whether the source accepts deliveries of a webhook. */
static int
is_accepted(const struct config_source *source, const struct subscription_view *view)
{
        return source->n_webhook_ids == 0 || config_lists_webhook(source, view->id);
}

/* Whether the kinds of an event get to a topic. */
enum coverage {
        NO_TOPIC,
        SOME_TOPICS, /* it is a family, and other kinds of it go to quarantine */
        ALL_TOPICS,
};

/* Whether the service documents kinds with this beginning, and all of them have a topic. */
static int
has_documented_kinds(const struct config *config, const struct topic_table *documented, const char *beginning,
                     size_t len)
{
        size_t n = 0;

        for (size_t i = 0; i < topic_table_size(documented); i++) {
                const char *kind = topic_table_rule(documented, i)->pattern;

                if (strncmp(kind, beginning, len) != 0)
                        continue;
                if (topic_table_find(config->topics, kind, strlen(kind)) == NULL)
                        return 0;
                n++;
        }
        return n > 0;
}

/* Return the length of an event's name without the .* of a family. */
static size_t
stem_of(const char *event)
{
        size_t len = strlen(event);

        return len > 2 && strcmp(event + len - 2, ".*") == 0 ? len - 2 : len;
}

/* Return the coverage of an event, which may be the name of a family of kinds, with .* or without. */
static enum coverage
find_coverage(const struct config *config, const struct topic_table *documented, const char *event)
{
        size_t len = strlen(event), stem = stem_of(event);
        char member[300];

        (void)snprintf(member, sizeof(member), "%.*s.member", (int)stem, event);
        if (topic_table_find(config->topics, event, len) != NULL ||
            topic_table_find(config->topics, member, strlen(member)) != NULL)
                return ALL_TOPICS;
        if (stem == len || !topic_table_has_family(config->topics, event, len - 1))
                return NO_TOPIC;
        return has_documented_kinds(config, documented, event, len - 1) ? ALL_TOPICS : SOME_TOPICS;
}

/* Events without a topic, or families of which only some kinds have one. */
struct gap {
        enum coverage coverage;
        char events[600]; /* as many as fit, */
        int is_cut;       /* and ... for the others */
};

/* Keep the worse of two gaps; add up equal ones. */
static void
widen(struct gap *gap, enum coverage coverage, const char *event)
{
        size_t len;

        if (coverage > gap->coverage || coverage == ALL_TOPICS)
                return;
        if (coverage < gap->coverage)
                *gap = (struct gap){.coverage = coverage};
        len = strlen(gap->events);
        if (gap->is_cut)
                return;
        gap->is_cut = len + strlen(event) + sizeof(", , ...") > sizeof(gap->events);
        (void)snprintf(gap->events + len, sizeof(gap->events) - len, "%s%s", len > 0 ? ", " : "",
                       gap->is_cut ? "..." : event);
}

/* Find the worst gap in the events of a webhook: for *, in all kinds that the service documents. */
static struct gap
find_gap(const struct doctor *doctor, const struct subscription_view *view)
{
        const struct config *config = doctor->config;
        struct topic_table *documented = topic_table_new();
        struct gap gap = {.coverage = ALL_TOPICS};

        topic_table_add_defaults(documented, "x");
        for (size_t i = 0; i < view->n_events && config->roles & CONFIG_ROUTER; i++) {
                if (strcmp(view->events[i], "*") != 0) {
                        widen(&gap, find_coverage(config, documented, view->events[i]), view->events[i]);
                        continue;
                }
                for (size_t k = 0; k < topic_table_size(documented); k++) {
                        const char *kind = topic_table_rule(documented, k)->pattern;

                        widen(&gap, find_coverage(config, documented, kind), kind);
                }
        }
        topic_table_free(documented);
        return gap;
}

static void
report_webhook(struct doctor *doctor, const struct config_source *source,
               const struct subscription_view *view)
{
        char events[300], *url = uri_hide_secrets(view->url), *ids = doctor_doubled_ids(doctor, source);
        struct gap gap = find_gap(doctor, view);

        list_events(view, events, sizeof(events));
        if (view->shows_events && view->n_events == 0)
                doctor_warn(doctor,
                            "%.300s has no events, so it delivers nothing; if it is needed, replace all "
                            "webhooks at the URL: "
                            "@GATEPOST@ subscriptions ensure --url URL --events LIST --secret-file FILE%s",
                            url, ids);
        else if (gap.coverage == NO_TOPIC)
                doctor_warn(
                    doctor,
                    "%.300s has events for which there is no topic (%s): their deliveries go to quarantine "
                    "as unknown-kind; name a topic for each in [events] of %s; then @GATEPOST@ topics "
                    "create, and let all routers load it",
                    url, gap.events, doctor->file);
        else if (gap.coverage == SOME_TOPICS)
                doctor_note(
                    doctor,
                    "%.300s has families of events of which only some kinds have a topic (%s): deliveries of "
                    "others go to quarantine as unknown-kind; if some are expected, name topics for them, or "
                    "one for the family, in [events] of %s; then @GATEPOST@ topics create, and let all "
                    "routers load it",
                    url, gap.events, doctor->file);
        else
                doctor_pass(doctor, "%.300s has %s%s", url,
                            view->shows_events ? "the events " : "unknown events", events);
        free(ids);
        free(url);
}

/* A webhook with the path of a source: another receiver may have it, too, so one that is accepted will do. */
static void
report_refused(struct doctor *doctor, const struct config_source *source,
               const struct subscription_view *view, int is_one_accepted)
{
        char *url = uri_hide_secrets(view->url);

        if (is_one_accepted) {
                doctor_warn(doctor,
                            "%.300s has the id %.64s, which webhook_id does not list: if it leads here, its "
                            "deliveries are refused",
                            url, view->id);
        } else {
                doctor_fail(
                    doctor, EX_CONFIG,
                    "%.300s has the id %.64s, which webhook_id does not list, and no webhook with this "
                    "path has another one: its deliveries are refused",
                    url, view->id);
                doctor_remedy(
                    doctor,
                    "add webhook_id = %.64s to [source %s] of %s if that is its receiver, then: "
                    "systemctl reload @UNIT@; do so on all receivers with this source; leave the ids that "
                    "are there, which may be of another account; @GATEPOST@ subscriptions list shows all of "
                    "this one",
                    view->id, source->name, doctor->file);
        }
        free(url);
}

/* List the first of some webhooks, by their ids and URLs. The caller frees it. */
static char *
list_webhooks(const struct subscription_view *const *views, size_t n)
{
        char *list = mem_strdup("");

        for (size_t i = 0; i < n && i <= LISTED_MAX; i++) {
                char *url = uri_hide_secrets(views[i]->url), *longer;

                if (i < LISTED_MAX)
                        longer =
                            mem_printf("%s%s%.64s at %.150s", list, i == 0 ? "" : ", ", views[i]->id, url);
                else
                        longer = mem_printf("%s and %zu more", list, n - i);
                free(url);
                free(list);
                list = longer;
        }
        return list;
}

/*
 * No URL ends with the path of a source. Nevertheless, a webhook may lead to it: of another account, or of
 * this one by a proxy that changes the path, which one of the strays may be. One more would then publish each
 * event twice. Deliveries since the daemon's start prove that there is one, unless they are test deliveries,
 * which the router of this machine counts.
 */
static void
report_none(struct doctor *doctor, const struct config_source *source, size_t n_webhooks,
            const struct subscription_view *const *strays, size_t n_strays)
{
        double n_accepted =
            status_number(json_tree_get(json_tree_get(doctor->status, "requests"), source->name), "accepted");
        char *ids = doctor_doubled_ids(doctor, source), *list = list_webhooks(strays, n_strays);
        char *command =
            mem_printf("@GATEPOST@ subscriptions ensure --url URL --events LIST --secret-file FILE%s", ids);

        doctor_begin(doctor, "webhook", "[source %s]", source->name);
        if (n_accepted > status_number(doctor->status, "testDeliveries"))
                doctor_warn(
                    doctor,
                    "no webhook of this account has a URL that ends with %s, although gatepostd has "
                    "accepted %.0f deliver%s of the source since its start: of another account of the "
                    "service, by another URL%s%s%s, or of gatepost doctor or send",
                    source->path, n_accepted, n_accepted == 1 ? "y" : "ies", n_strays == 0 ? "" : " (", list,
                    n_strays == 0 ? "" : ")");
        else if (n_webhooks == 0)
                doctor_warn(doctor,
                            "this account of the service has no webhook, so it delivers nothing here: %s",
                            command);
        else if (n_strays == 0)
                doctor_warn(
                    doctor,
                    "no webhook of this account has a URL that ends with %s; if no other account of the "
                    "service delivers here: %s",
                    source->path, command);
        else
                doctor_warn(
                    doctor,
                    "no webhook of this account has a URL that ends with %s, and these lead to no source by "
                    "their path: %s; compare them with the proxy's configuration: if it changes the path of "
                    "one, and leads it here, register no other, or each event is published twice; only if "
                    "none leads here: %s",
                    source->path, list, command);
        free(command);
        free(list);
        free(ids);
}

static void
check_webhook(struct doctor *doctor, const struct config_source *source, const struct subscription_view *view,
              int is_one_accepted)
{
        doctor_begin(doctor, "webhook", "[source %s]", source->name);
        if (!is_accepted(source, view)) {
                report_refused(doctor, source, view, is_one_accepted);
                return;
        }
        report_webhook(doctor, source, view);
        doctor_webhook_url_check(doctor, source, view->url);
}

static void
check_source(struct doctor *doctor, const struct config_source *source,
             const struct subscription_views *views)
{
        const struct subscription_view **accepted = mem_alloc((views->n + 1) * sizeof(*accepted)),
                                       **strays = mem_alloc((views->n + 1) * sizeof(*strays));
        size_t n = 0, n_accepted = 0, n_strays = 0;

        for (size_t i = 0; i < views->n; i++) {
                const struct subscription_view *view = &views->items[i];
                int leads_here = leads_to(doctor, source, view);

                if (leads_here)
                        n++;
                if (leads_here && is_accepted(source, view))
                        accepted[n_accepted++] = view;
                else if (leads_to(doctor, NULL, view))
                        strays[n_strays++] = view;
        }
        for (size_t i = 0; i < views->n; i++) {
                if (leads_to(doctor, source, &views->items[i]))
                        check_webhook(doctor, source, &views->items[i], n_accepted > 0);
        }
        if (n == 0)
                report_none(doctor, source, views->n, strays, n_strays);
        doctor_doubled_check(doctor, source, accepted, n_accepted);
        for (size_t i = 0, n_noted = 0; i < n_strays && n_noted < LISTED_MAX; i++) {
                if (is_accepted(source, strays[i]) &&
                    doctor_doubled_note(doctor, source, accepted, n_accepted, strays[i]))
                        n_noted++;
        }
        free(strays);
        free(accepted);
}

static void
check_list(struct doctor *doctor, struct api_client *client)
{
        struct api_client_answer answer = {0};
        struct subscription_views views = {0};
        struct error error;

        api_client_call(client, "GET", "/webhooks", NULL, 0, &answer);
        if (!api_client_succeeded(&answer)) {
                const char *remedy;
                int status = api_client_explain(&answer, &error, &remedy);

                doctor_fail(doctor, status == EX_NOPERM || status == EX_CONFIG ? status : EX_UNAVAILABLE,
                            "%s", error.text);
                doctor_remedy(doctor, "%s", remedy);
        } else if (service_answer_list(answer.body, answer.len, &views, &error) != 0) {
                doctor_fail(doctor, EX_CONFIG, "the answer to GET /webhooks is not understood: %s",
                            error.text);
                doctor_remedy(doctor, "check base_url in [service] of %s", doctor->file);
        } else {
                doctor_pass(doctor, "%zu webhook%s", views.n, views.n == 1 ? "" : "s");
                for (size_t s = 0; s < doctor->config->n_sources && doctor->config->roles & CONFIG_RECEIVER;
                     s++)
                        check_source(doctor, &doctor->config->sources[s], &views);
        }
        subscription_views_clear(&views);
        api_client_answer_clear(&answer);
}

void
doctor_check_service(struct doctor *doctor)
{
        struct api_client *client;
        struct error error;
        int status;

        if (doctor->config->service_base_url == NULL)
                return;
        doctor_begin(doctor, "service", "%s", doctor->config->service_base_url);
        client = api_client_new(doctor->config, TIMEOUT_MS, &status, &error);
        if (client == NULL) {
                doctor_fail(doctor, status, "%s", error.text);
                doctor_remedy(
                    doctor,
                    "correct [service] of %s; a key that only admins may read needs doctor to be run "
                    "by one of them",
                    doctor->file);
                return;
        }
        check_list(doctor, client);
        api_client_close(client);
}
