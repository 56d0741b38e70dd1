#include "config/load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/number.h"
#include "config/endpoint.h"
#include "config/secrets.h"

/* What works, but probably not as intended. Each warning is for one mistake that a sound file can have. */

#define SHORT_TOLERANCE_MS 30000
#define LONG_TOLERANCE_MS (24 * 3600000)
#define SHORT_WINDOW_MS 3600000

static void
warn_about_admin(const struct config *config, struct findings *findings)
{
        if (config->admin != NULL && !endpoint_is_private(config->admin))
                finding_set_remedy(
                    load_warning(findings, config->admin->line,
                                 "%.100s: the admin endpoint has neither TLS nor authentication",
                                 config->admin->text),
                    "restrict access to it by a firewall, or listen on a loopback address");
}

static int
trusts_proxies(const struct config *config)
{
        return config->n_trusted_proxies > 0 || config->trusts_unix_sockets;
}

static void
warn_about_listeners(const struct config *config, struct findings *findings)
{
        for (size_t i = 0; i < config->n_listen; i++) {
                const struct config_listen *listen = &config->listen[i];

                if (endpoint_is_private(listen) || config->certificate != NULL || trusts_proxies(config))
                        continue;
                finding_set_remedy(
                    load_warning(findings, listen->line,
                                 "%.100s can be reached from other machines without TLS", listen->text),
                    "set tls_certificate_file and tls_key_file, or listen on 127.0.0.1 behind a proxy");
                return;
        }
}

/* Whether a trusted_proxy may be on this machine, and so connect to an address that only it can reach. */
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

static void
warn_about_proxy(const struct config *config, const struct config_listen *listen, struct findings *findings)
{
        const char *proxy = listen->address.ss_family == AF_UNIX   ? "unix"
                            : listen->address.ss_family == AF_INET ? "127.0.0.1"
                                                                   : "::1";
        struct finding *finding =
            load_warning(findings, listen->line,
                         config->requires_proxy
                             ? "%.100s accepts no connection: no trusted_proxy can reach it"
                             : "%.100s: no trusted_proxy can reach it, so X-Forwarded-For is ignored",
                         listen->text);

        if (endpoint_is_private(listen))
                finding_set_remedy(finding, "trusted_proxy = %s", proxy);
}

/* Without it, the client of every request is the proxy: in the log, and for limits by address. */
static void
warn_about_proxies(const struct config *config, struct findings *findings)
{
        size_t n_reachable = 0;

        for (size_t i = 0; i < config->n_listen; i++)
                n_reachable += (size_t)has_proxy(config, &config->listen[i]);
        for (size_t i = 0; i < config->n_listen && trusts_proxies(config); i++) {
                if (!has_proxy(config, &config->listen[i]) && (n_reachable == 0 || config->requires_proxy))
                        warn_about_proxy(config, &config->listen[i], findings);
        }
}

static void
warn_about_chain(const struct config *config, const struct ini *ini, struct findings *findings)
{
        if (config->certificate != NULL && certificate_lacks_chain(config->certificate))
                finding_set_remedy(
                    load_warning(
                        findings, ini_line(ini, "receiver", "", "tls_certificate_file"),
                        "%.100s has one certificate, which another authority has signed: clients may "
                        "not be able to verify it",
                        config->tls_certificate_file),
                    "append the certificates of the intermediate authorities to the file");
}

static const char *
doubt_in_file(const struct config *config, const struct ini_entry *entry)
{
        const struct config_source *source =
            config_find_source(config, entry->argument, strlen(entry->argument));

        for (size_t i = 0; source != NULL && i < source->n_secret_files; i++) {
                if (strcmp(source->secret_files[i].path, entry->value) == 0)
                        return source->secret_files[i].doubt;
        }
        return NULL;
}

static void
warn_about_secrets(const struct config *config, const struct ini *ini, struct findings *findings)
{
        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];
                const char *doubt = NULL;

                if (entry->name == NULL || strcmp(entry->section, "source") != 0)
                        continue;
                if (strcmp(entry->name, "secret") == 0)
                        doubt = secrets_doubt(entry->value);
                else if (strcmp(entry->name, "secret_file") == 0)
                        doubt = doubt_in_file(config, entry);
                if (doubt != NULL)
                        load_warning(findings, entry->line, "%s: the secret %s", entry->name, doubt);
        }
}

/* Whoever can write one of the files can have forged deliveries accepted. */
static void
warn_about_writers(const struct config *config, struct findings *findings)
{
        for (size_t i = 0; i < config->n_files; i++) {
                const struct config_file *file = &config->files[i];

                if ((file->st.st_mode & S_IWOTH) && !S_ISDIR(file->st.st_mode))
                        finding_set_remedy(load_warning(findings, file->line, "others can write %.150s",
                                                        file->path),
                                           "chmod o-w %s", file->path);
        }
}

/* Return whether one of the secrets of a source is one of another source. */
static int
shares_secret(const struct config_source *source, const struct config_source *other)
{
        uint8_t signature[SIGNATURE_SIZE];

        for (size_t i = 0; i < source->n_keys; i++) {
                if (signature_compute(source->keys[i], "0", "", 0, signature) == 0 &&
                    signature_verify(other->keys, other->n_keys, "0", "", 0, signature) > 0)
                        return 1;
        }
        return 0;
}

static void
warn_about_shared_secrets(const struct config *config, const struct ini *ini, struct findings *findings)
{
        for (size_t i = 1; i < config->n_sources; i++) {
                const struct config_source *source = &config->sources[i], *other = config->sources;

                while (other < source && !shares_secret(source, other))
                        other++;
                if (other < source)
                        load_warning(
                            findings, ini_line(ini, "source", source->name, NULL),
                            "[source %s] and [source %s] have a secret in common: who sees a delivery "
                            "to one can send it to the other",
                            other->name, source->name);
        }
}

/*
 * Who captured a delivery can send it again under another delivery-id as long as its timestamp is fresh; only
 * the replay guard, which has no room for many, prevents that.
 */
static void
warn_about_times(const struct config *config, const struct ini *ini, struct findings *findings)
{
        char text[NUMBER_TEXT_SIZE];

        for (size_t i = 0; i < config->n_sources; i++) {
                const struct config_source *source = &config->sources[i];
                size_t line = ini_line(ini, "source", source->name, "tolerance");

                if (source->tolerance_ms < SHORT_TOLERANCE_MS)
                        load_warning(
                            findings, line,
                            "tolerance = %s refuses genuine deliveries when clocks differ by that much",
                            number_format_duration(source->tolerance_ms, text));
                else if (source->tolerance_ms > LONG_TOLERANCE_MS)
                        load_warning(
                            findings, line,
                            "tolerance = %s: who captured a delivery can send it again for that long",
                            number_format_duration(source->tolerance_ms, text));
        }
        if ((config->roles & CONFIG_ROUTER) && config->dedup_window_ms < SHORT_WINDOW_MS)
                load_warning(findings, ini_line(ini, "router", "", "dedup_window"),
                             "dedup_window = %s: an attempt that comes later than that is published again",
                             number_format_duration(config->dedup_window_ms, text));
}

void
warn_about(const struct config *config, const struct ini *ini, struct findings *findings)
{
        if (config->roles & CONFIG_RECEIVER) {
                warn_about_listeners(config, findings);
                warn_about_proxies(config, findings);
                warn_about_chain(config, ini, findings);
        }
        warn_about_admin(config, findings);
        warn_about_times(config, ini, findings);
        warn_about_secrets(config, ini, findings);
        warn_about_writers(config, findings);
        warn_about_shared_secrets(config, ini, findings);
        if (config->embedded)
                load_warning(findings, ini_line(ini, "kafka", "", "bootstrap.servers"),
                             "the embedded broker forgets all records when gatepostd ends");
}
