#include "config/load.h"

#include <string.h>

#include "config/endpoint.h"

/* Addresses, proxies and certificate of the receiver that work, but probably not as intended. */

static void
warn_about_open_listeners(const struct config *config, struct problems *problems)
{
        int trusts_proxies = config->n_trusted_proxies > 0 || config->trusts_unix_sockets;

        for (size_t i = 0; i < config->n_listen && config->certificate == NULL && !trusts_proxies; i++) {
                if (endpoint_is_private(&config->listen[i]))
                        continue;
                problems_warn(
                    problems, config->listen[i].line,
                    "%.100s can be reached from other machines without TLS: bodies can be read on the way; "
                    "set tls_certificate_file and tls_key_file, or listen on 127.0.0.1 behind a proxy",
                    config->listen[i].text);
                break;
        }
}

static void
warn_about_certificate(const struct config *config, const struct ini *ini, struct problems *problems)
{
        const char *doubt = config->certificate == NULL ? NULL : certificate_doubt(config->certificate);

        if (doubt != NULL)
                problems_warn(problems, ini_line(ini, "receiver", "", "tls_certificate_file"),
                              "tls_certificate_file: the certificate in %s %s", config->tls_certificate_file,
                              doubt);
}

/* Return the line of a trusted_proxy that is any address, or 0. */
static size_t
line_of_any_proxy(const struct ini *ini)
{
        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];
                size_t len;

                if (entry->name == NULL || strcmp(entry->name, "trusted_proxy") != 0)
                        continue;
                len = strlen(entry->value);
                if (len > 2 && strcmp(entry->value + len - 2, "/0") == 0)
                        return entry->line;
        }
        return 0;
}

static void
warn_about_proxies(const struct ini *ini, struct problems *problems)
{
        size_t line = line_of_any_proxy(ini);

        if (line != 0)
                problems_warn(problems, line,
                              "every client is trusted to name the address that is logged and limited; name "
                              "the proxies only");
}

/* Whether a trusted_proxy may connect to the address, which only processes on this machine can reach. */
static int
has_local_proxy(const struct config *config, const struct config_listen *listen)
{
        static const struct network ipv4 = {{{[10] = 0xff, [11] = 0xff, [12] = 127}}, 96 + 8};
        static const struct network ipv6 = {{{[15] = 1}}, 128};
        const struct network *local = listen->address.ss_family == AF_INET ? &ipv4 : &ipv6;

        if (listen->address.ss_family == AF_UNIX)
                return config->trusts_unix_sockets;
        for (size_t i = 0; i < config->n_trusted_proxies; i++) {
                const struct network *proxies = &config->trusted_proxies[i];

                if (network_contains(proxies, &local->address) || network_contains(local, &proxies->address))
                        return 1;
        }
        return 0;
}

/* Whether a trusted_proxy may connect to the address. */
static int
has_proxy(const struct config *config, const struct config_listen *listen)
{
        return endpoint_is_private(listen) ? has_local_proxy(config, listen) : config->n_trusted_proxies > 0;
}

/* Return the address of a proxy that may connect to the address. */
static const char *
proxy_of(const struct config_listen *listen)
{
        if (listen->address.ss_family == AF_UNIX)
                return "unix";
        if (!endpoint_is_private(listen))
                return "ADDRESS, that of the proxy";
        return listen->address.ss_family == AF_INET ? "127.0.0.1" : "::1";
}

/* Warn of listeners that no trusted_proxy can connect to: of each if it is closed for all others. */
static void
warn_about_missing_proxies(const struct config *config, struct problems *problems)
{
        size_t n = 0;

        for (size_t i = 0; i < config->n_listen; i++)
                n += (size_t)has_proxy(config, &config->listen[i]);
        for (size_t i = 0; i < config->n_listen && config->requires_proxy; i++) {
                const struct config_listen *listen = &config->listen[i];

                if (!has_proxy(config, listen))
                        problems_warn(problems, listen->line,
                                      "%.100s accepts no connection: proxy_protocol = required, and no "
                                      "trusted_proxy can reach it; add trusted_proxy = %s",
                                      listen->text, proxy_of(listen));
        }
        if (n == 0 && config->n_listen > 0 && !config->requires_proxy &&
            (config->n_trusted_proxies > 0 || config->trusts_unix_sockets))
                problems_warn(problems, config->listen[0].line,
                              "%.100s: no trusted_proxy can reach it, so the address of each client is that "
                              "of its proxy; add trusted_proxy = %s",
                              config->listen[0].text, proxy_of(&config->listen[0]));
}

void
warn_about_listeners(const struct config *config, const struct ini *ini, struct problems *problems)
{
        warn_about_open_listeners(config, problems);
        warn_about_certificate(config, ini, problems);
        warn_about_proxies(ini, problems);
        warn_about_missing_proxies(config, problems);
}
