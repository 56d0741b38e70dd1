#include "cli/doctor.h"

#include <stdio.h>
#include <sysexits.h>

#include "cli/api_client.h"
#include "cli/receiver_url.h"
#include "cli/service_answer.h"

/* The step about the service: whether it has webhooks that lead here. */

#define TIMEOUT_MS 10000

static void
check_source(struct doctor *doctor, const struct config_source *source,
             const struct subscription_views *views)
{
        const char *refused = NULL;

        for (size_t i = 0; i < views->n; i++) {
                const struct subscription_view *view = &views->items[i];

                if (view->url == NULL || receiver_url_source(doctor->config, view->url) != source)
                        continue;
                if (source->n_webhook_ids == 0 || config_lists_webhook(source, view->id)) {
                        doctor_note(doctor, FINDING_PASSED, source->name, "webhook %s leads here", view->id);
                        return;
                }
                refused = view->id;
        }
        if (refused != NULL)
                finding_set_remedy(
                    doctor_fail(doctor, EX_CONFIG, source->name,
                                "webhook %s leads here, but its deliveries are refused: webhook_id "
                                "has another",
                                refused),
                    "add webhook_id = %s to [source %s] of %s", refused, source->name, doctor->file);
        else
                finding_set_remedy(doctor_note(doctor, FINDING_WARNING, source->name,
                                               "no webhook of the service has a URL that ends with %s",
                                               source->path),
                                   "%s subscriptions list; unless a proxy changes the path, register one: "
                                   "gatepost(1), SUBSCRIPTIONS",
                                   doctor->command);
}

static void
check_webhooks(struct doctor *doctor, const struct api_client_answer *answer)
{
        struct subscription_views views = {0};
        struct error error;
        const char *remedy;

        if (!api_client_succeeded(answer)) {
                int status = api_client_explain(answer, &error, &remedy);

                finding_set_remedy(doctor_fail(doctor, status, "[service]", "%s", error.text), "%s",
                                   remedy == NULL ? "check [service] of the configuration" : remedy);
        } else if (service_answer_list(answer->body, answer->len, &views, &error) != 0) {
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, "[service]", "%s", error.text),
                                   "correct base_url in [service] of %s", doctor->file);
        } else {
                for (size_t s = 0; s < doctor->config->n_sources; s++)
                        check_source(doctor, &doctor->config->sources[s], &views);
        }
        subscription_views_clear(&views);
}

void
doctor_check_service(struct doctor *doctor)
{
        struct api_client_answer answer = {0};
        struct api_client *client;
        struct error error;
        int status;

        if (doctor->config->service_base_url == NULL || !(doctor->config->roles & CONFIG_RECEIVER))
                return;
        client = api_client_new(doctor->config, TIMEOUT_MS, &status, &error);
        if (client == NULL) {
                finding_set_remedy(doctor_fail(doctor, status, "[service]", "%s", error.text),
                                   "correct [service] of %s", doctor->file);
                return;
        }
        api_client_call(client, "GET", "/webhooks", NULL, 0, &answer);
        check_webhooks(doctor, &answer);
        api_client_answer_clear(&answer);
        api_client_close(client);
}
