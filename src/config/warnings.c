#include "config/load.h"

#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "config/endpoint.h"

/* What works, but probably not as intended. Each warning is for one mistake that a sound file can have. */

#define SHORT_TOLERANCE_MS 30000
#define LONG_TOLERANCE_MS (24 * 3600000)
#define SHORT_WINDOW_MS 3600000

static void
warn_about_admin(const struct config *config, struct findings *findings)
{
        if (config->admin != NULL && !endpoint_is_private(config->admin))
                finding_set_remedy(
                    load_warning(findings, config_line_of_value(config, config->admin->text),
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
                    load_warning(findings, config_line_of_value(config, listen->text),
                                 "%.100s can be reached from other machines without TLS", listen->text),
                    "set tls_certificate_file and tls_key_file, or listen on 127.0.0.1 behind a proxy");
                return;
        }
}

/* Only a proxy on this machine can connect, and the limits by address would count all its clients as one. */
static void
warn_about_limits(const struct config *config, const struct ini *ini, struct findings *findings)
{
        const char *limit =
            config->max_refusals_per_address > 0 ? "max_refusals_per_address" : "max_connections_per_address";

        if (trusts_proxies(config) ||
            (config->max_refusals_per_address == 0 && config->max_connections_per_address == 0))
                return;
        for (size_t i = 0; i < config->n_listen; i++) {
                if (!endpoint_is_private(&config->listen[i]))
                        return;
        }
        finding_set_remedy(load_warning(findings, ini_line(ini, "receiver", "", limit),
                                        "%s counts the clients of a proxy as one: there is no trusted_proxy",
                                        limit),
                           "trusted_proxy = %s",
                           endpoint_path(config->listen) == NULL ? "127.0.0.1" : "unix");
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

static void
warn_about_secrets(const struct config *config, const struct ini *ini, struct findings *findings)
{
        for (size_t i = 0; i < config->n_sources; i++) {
                const struct config_source *source = &config->sources[i];

                if (source->secret_doubt != NULL)
                        load_warning(findings, ini_line(ini, "source", source->name, NULL),
                                     "[source %s]: the secret %s", source->name, source->secret_doubt);
        }
}

/* Whoever can write one of the files can have forged deliveries accepted. */
static void
warn_about_writers(const struct config *config, struct findings *findings)
{
        for (size_t i = 0; i < config->n_files; i++) {
                const struct config_file *file = &config->files[i];

                if ((file->st.st_mode & S_IWOTH) && !S_ISDIR(file->st.st_mode))
                        finding_set_remedy(load_warning(findings, config_line_of_value(config, file->path),
                                                        "others can write %.150s", file->path),
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
                warn_about_limits(config, ini, findings);
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
