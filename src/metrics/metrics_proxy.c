#include "base/clock.h"
#include "http/clients.h"
#include "metrics/metrics_state.h"
#include "metrics/status_writer.h"

/* The proxy before the receiver that is no trusted_proxy: the member `untrustedProxy` of /status. */

int
metrics_note_untrusted_proxy(struct metrics *metrics, const struct address *address)
{
        int is_first;

        pthread_mutex_lock(&metrics->mutex);
        is_first = metrics->untrusted_proxy.time_s == 0;
        metrics->untrusted_proxy = (struct metrics_proxy){*address, clock_now_ms() / 1000};
        pthread_mutex_unlock(&metrics->mutex);
        return is_first;
}

/* A reload may have made it a trusted_proxy. */
static int
is_trusted(const struct config *config, const struct address *address)
{
        const struct http_trust trust = {config->trusted_proxies, config->n_trusted_proxies,
                                         config->trusts_unix_sockets};

        return forwarded_trusts(&trust, address, address_is_none(address));
}

void
metrics_proxy_status(struct status_writer *writer)
{
        const struct metrics *metrics = writer->metrics;
        pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&metrics->mutex;
        char text[ADDRESS_TEXT_SIZE];
        struct metrics_proxy proxy;

        pthread_mutex_lock(mutex);
        proxy = metrics->untrusted_proxy;
        pthread_mutex_unlock(mutex);
        if (proxy.time_s == 0 || is_trusted(metrics->newest, &proxy.address)) {
                json_null(writer->json, "untrustedProxy");
                return;
        }
        json_open_object(writer->json, "untrustedProxy");
        status_writer_text(writer, "address",
                           address_is_none(&proxy.address) ? "unix" : address_format(&proxy.address, text));
        json_number(writer->json, "timeSeconds", proxy.time_s);
        json_close_object(writer->json);
}
