#include "cli/doctor_webhook.h"

#include <stdlib.h>
#include <strings.h>
#include <sysexits.h>

#include "base/mem.h"
#include "base/uri.h"
#include "cli/doctor_daemon.h"
#include "cli/own_url.h"
#include "cli/receiver_url.h"
#include "config/certificate.h"

/* Whether the service can deliver to the URL of a webhook that leads here by its path. */

#define TIMEOUT_MS 10000

/*
 * Report that the certificate of this receiver, which may have been renewed with other names, is not for the
 * host of a webhook. A proxy that speaks HTTP has one of its own for the service.
 */
static void
report_host(struct doctor *doctor, const struct config_source *source, const char *webhook)
{
        const struct config *config = doctor->config;
        char *host = config->certificate == NULL ? NULL : receiver_url_tls_host(webhook);
        int has_proxy =
            !config->requires_proxy && (config->n_trusted_proxies > 0 || config->trusts_unix_sockets);
        char names[300], *url, *reload, *text;

        if (host != NULL && !certificate_fits(config->certificate, host)) {
                certificate_names(config->certificate->leaf, names, sizeof(names));
                url = uri_hide_secrets(webhook);
                reload = doctor_daemon_reload(doctor);
                text =
                    mem_printf("%.300s leads to %s, but the certificate in %s is for %s: unless a proxy "
                               "before gatepostd ends TLS, the service refuses it; renew it for this name, "
                               "too, then: %s",
                               url, host, config->tls_certificate_file, names, reload);
                doctor_begin(doctor, "webhook", "[source %s]", source->name);
                if (has_proxy)
                        doctor_note(doctor, "%s", text);
                else
                        doctor_warn(doctor, "%s", text);
                free(text);
                free(reload);
                free(url);
        }
        free(host);
}

/* Report that the URL has not the scheme of the listener that it leads to. */
static int
report_scheme(struct doctor *doctor, const struct config_source *source, const char *webhook)
{
        const struct config *config = doctor->config;
        char *url;

        if (config->certificate == NULL || strncasecmp(webhook, "http:", 5) != 0 ||
            !receiver_url_is_listener(config, webhook, TIMEOUT_MS))
                return 0;
        url = uri_hide_secrets(webhook);
        doctor_begin(doctor, "webhook", "[source %s]", source->name);
        doctor_fail(doctor, EX_CONFIG,
                    "%.300s begins with http://, but it leads to a listener with TLS: all deliveries fail",
                    url);
        doctor_remedy(
            doctor,
            "register https%.300s instead: @GATEPOST@ subscriptions ensure --help; or, if no one else "
            "is to reach the listener, remove tls_certificate_file and tls_key_file",
            url + 4);
        free(url);
        return 1;
}

/* Test deliveries go to the listeners, unless --to names a URL: a webhook may lead elsewhere, or nowhere. */
static void
note_untried(struct doctor *doctor, const struct config_source *source, const char *webhook)
{
        if (!doctor->sends || doctor->url != NULL || own_url_is_one(doctor->config, source->path, webhook))
                return;
        doctor_begin(doctor, "webhook", "[source %s]", source->name);
        doctor_note(doctor, "its URL was not tried; to try it: @GATEPOST@ doctor --to URL");
}

void
doctor_webhook_url_check(struct doctor *doctor, const struct config_source *source, const char *webhook)
{
        report_host(doctor, source, webhook);
        if (!report_scheme(doctor, source, webhook))
                note_untried(doctor, source, webhook);
}
