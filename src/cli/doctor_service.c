#include "cli/doctor.h"

#include <sysexits.h>

#include "cli/receiver_url.h"
#include "cli/webhook.h"

/* The step about the service: whether it has webhooks that lead here. */

static void
check_source(struct doctor *doctor, const struct config_source *source, const struct webhooks *webhooks)
{
        const char *refused = NULL;

        for (size_t i = 0; i < webhooks->n; i++) {
                const struct registered_webhook *webhook = &webhooks->items[i];

                if (receiver_url_source(doctor->config, webhook->url) != source)
                        continue;
                if (source->n_webhook_ids == 0 || config_lists_webhook(source, webhook->id)) {
                        doctor_pass(doctor, source->name, "webhook %s leads here", webhook->id);
                        return;
                }
                refused = webhook->id;
        }
        if (refused != NULL)
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, source->name, NULL,
                                               "webhook %s leads here, but is none of webhook_id", refused),
                                   "add webhook_id = %s to [source %s] of %s", refused, source->name,
                                   doctor->file);
        else
                finding_set_remedy(
                    findings_add(&doctor->findings, FINDING_WARNING, source->name,
                                 "no webhook of the service has a URL that ends with %s", source->path),
                    "unless a proxy changes the path, register one: gatepost(1), SUBSCRIPTIONS");
}

void
doctor_check_service(struct doctor *doctor)
{
        struct service_failure failure;
        struct webhooks webhooks;
        int status;

        if (doctor->config->service_base_url == NULL || !(doctor->config->roles & CONFIG_RECEIVER))
                return;
        status = webhook_list(doctor->config, &webhooks, &failure);
        if (status != 0)
                doctor_fail(doctor, status, "[service]",
                            failure.remedy == NULL ? "correct [service] of the configuration"
                                                   : failure.remedy,
                            "%s", failure.reason.text);
        for (size_t s = 0; s < doctor->config->n_sources && status == 0; s++)
                check_source(doctor, &doctor->config->sources[s], &webhooks);
        webhook_list_clear(&webhooks);
}
