#include "cli/doctor_doubled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "base/uri.h"
#include "cli/api_client.h"
#include "cli/receiver_url.h"
#include "cli/status.h"
#include "cli/subscription.h"

/* The service's API: the key, and the webhooks that lead here. */

#define TIMEOUT_MS 10000

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
        for (size_t i = 0; i < source->n_webhook_ids; i++) {
                if (strcmp(source->webhook_ids[i], view->id) == 0)
                        return 1;
        }
        return source->n_webhook_ids == 0;
}

/* Whether a rule is for kinds with this beginning. */
static int
has_rule_for(const struct config *config, const char *beginning, size_t len)
{
        for (size_t i = 0; i < topic_table_size(config->topics); i++) {
                if (strncmp(topic_table_rule(config->topics, i)->pattern, beginning, len) == 0)
                        return 1;
        }
        return 0;
}

/* Whether there is a topic for an event, which may be the name of a family of kinds, with .* or without. */
static int
has_topic(const struct config *config, const char *event)
{
        size_t len = strlen(event), stem = doctor_doubled_stem(event);
        char member[300];

        if (stem < len && has_rule_for(config, event, len - 1))
                return 1;
        (void)snprintf(member, sizeof(member), "%.*s.member", (int)stem, event);
        return topic_table_find(config->topics, event, len) != NULL ||
               topic_table_find(config->topics, member, strlen(member)) != NULL;
}

/* Return the first kind or family of the service's list for which there is no topic, to be freed, or NULL. */
static char *
find_missing_kind(const struct config *config)
{
        struct topic_table *documented = topic_table_new();
        char *found = NULL;

        topic_table_add_defaults(documented, "x");
        for (size_t i = 0; i < topic_table_size(documented) && found == NULL; i++) {
                const char *event = topic_table_rule(documented, i)->pattern;

                if (!has_topic(config, event))
                        found = mem_printf("* (%s)", event);
        }
        topic_table_free(documented);
        return found;
}

/* Return the first event of a webhook for which there is no topic, to be freed, or NULL. */
static char *
find_unknown(const struct doctor *doctor, const struct subscription_view *view)
{
        char *found = NULL;

        for (size_t i = 0; i < view->n_events && doctor->config->roles & CONFIG_ROUTER && found == NULL;
             i++) {
                if (strcmp(view->events[i], "*") == 0)
                        found = find_missing_kind(doctor->config);
                else if (!has_topic(doctor->config, view->events[i]))
                        found = mem_strdup(view->events[i]);
        }
        return found;
}

static void
report_webhook(struct doctor *doctor, const struct config_source *source,
               const struct subscription_view *view)
{
        char events[300], *url = uri_hide_secrets(view->url), *unknown = find_unknown(doctor, view);
        char *ids = doctor_doubled_ids(doctor, source);

        list_events(view, events, sizeof(events));
        if (view->shows_events && view->n_events == 0)
                doctor_warn(doctor,
                            "%.300s has no events, so it delivers nothing; if it is needed, replace all "
                            "webhooks at the URL: "
                            "@GATEPOST@ subscriptions ensure --url URL --events LIST --secret-file FILE%s",
                            url, ids);
        else if (unknown != NULL)
                doctor_warn(doctor,
                            "%.300s has the event %.255s, for which there is no topic: its deliveries go to "
                            "quarantine as unknown-kind; give it a topic in [events] of %s, and create that: "
                            "@GATEPOST@ topics create",
                            url, unknown, doctor->file);
        else
                doctor_pass(doctor, "%.300s has %s%s", url,
                            view->shows_events ? "the events " : "unknown events", events);
        free(ids);
        free(unknown);
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
                    "systemctl reload @UNIT@; leave the ids that are there, which may be of another "
                    "account; @GATEPOST@ subscriptions list shows all of this one",
                    view->id, source->name, doctor->file);
        }
        free(url);
}

/*
 * No webhook leads to a source. The account of [service] need not have one for each, so the remedy depends on
 * whether deliveries arrive; the router of this machine knows how many of those may be test deliveries.
 */
static void
report_none(struct doctor *doctor, const struct config_source *source)
{
        double n_accepted =
            status_number(json_tree_get(json_tree_get(doctor->status, "requests"), source->name), "accepted");
        char *ids = doctor_doubled_ids(doctor, source);

        doctor_begin(doctor, "webhook", "[source %s]", source->name);
        if (n_accepted > status_number(doctor->status, "testDeliveries"))
                doctor_warn(
                    doctor,
                    "no webhook of this account has a URL that ends with %s, although gatepostd has "
                    "accepted %.0f deliver%s of the source since its start: of another account of the "
                    "service, by another URL, or of gatepost doctor or send",
                    source->path, n_accepted, n_accepted == 1 ? "y" : "ies");
        else
                doctor_warn(
                    doctor,
                    "no webhook of the service has a URL that ends with %s, so nothing is delivered "
                    "here: @GATEPOST@ subscriptions ensure --url URL --events LIST --secret-file FILE%s",
                    source->path, ids);
        free(ids);
}

static void
check_source(struct doctor *doctor, const struct config_source *source,
             const struct subscription_views *views)
{
        const struct subscription_view **accepted = mem_alloc((views->n + 1) * sizeof(*accepted));
        size_t n = 0, n_accepted = 0;

        for (size_t i = 0; i < views->n; i++) {
                if (leads_to(doctor, source, &views->items[i]) && is_accepted(source, &views->items[i]))
                        accepted[n_accepted++] = &views->items[i];
        }
        for (size_t i = 0; i < views->n; i++) {
                const struct subscription_view *view = &views->items[i];

                if (!leads_to(doctor, source, view))
                        continue;
                doctor_begin(doctor, "webhook", "[source %s]", source->name);
                n++;
                if (is_accepted(source, view))
                        report_webhook(doctor, source, view);
                else
                        report_refused(doctor, source, view, n_accepted > 0);
        }
        if (n == 0)
                report_none(doctor, source);
        doctor_doubled_check(doctor, source, accepted, n_accepted);
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
