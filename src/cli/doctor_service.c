#include "cli/doctor.h"

#include <stdlib.h>
#include <sysexits.h>

#include "base/uri.h"
#include "cli/api_client.h"
#include "cli/receiver_url.h"
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

static void
check_source(struct doctor *doctor, const struct config_source *source,
             const struct subscription_views *views)
{
        char events[300], *url;
        size_t n = 0;

        doctor_begin(doctor, "webhook", "[source %s]", source->name);
        for (size_t i = 0; i < views->n; i++) {
                if (views->items[i].url == NULL ||
                    receiver_url_source(doctor->config, views->items[i].url) != source)
                        continue;
                if (n++ > 0)
                        doctor_begin(doctor, "webhook", "[source %s]", source->name);
                list_events(&views->items[i], events, sizeof(events));
                url = uri_hide_userinfo(views->items[i].url);
                doctor_pass(doctor, "%.300s has %s%s", url,
                            views->items[i].shows_events ? "the events " : "unknown events", events);
                free(url);
        }
        if (n == 0)
                doctor_warn(
                    doctor,
                    "no webhook of the service has a URL that ends with %s, so nothing is delivered here: "
                    "gatepost subscriptions ensure --url URL --events LIST --secret-file FILE",
                    source->path);
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
