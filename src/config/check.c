#include "config/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"
#include "config/endpoint.h"

static void
set_default_instance(struct config *config, struct findings *findings)
{
        char host[256] = "";

        if (config->instance != NULL)
                return;
        (void)gethostname(host, sizeof(host) - 1);
        for (char *c = host; *c != '\0'; c++) {
                if (strchr("/\\ \t,=", *c) != NULL)
                        *c = '-';
        }
        if (host[0] == '\0')
                finding_set_remedy(load_error(findings, 0, "this machine has no host name"),
                                   "set instance in [gatepost]");
        config->instance = mem_strdup(host);
}

/* Consumers recognise events by ce_source and ce_id, so sources must not share one. */
static void
set_event_names(const struct config *config, struct config_source *source, const struct ini *ini,
                struct findings *findings)
{
        size_t line = ini_line(ini, "source", source->name, "ce_source");

        if (source->ce_source == NULL && line == 0)
                source->ce_source = mem_printf("/%s", source->name);
        source->rules.ce_source = source->ce_source;
        source->rules.ce_type_prefix = source->ce_type_prefix;
        source->rules.ce_dataschema_base = source->ce_dataschema_base;
        for (const struct config_source *other = config->sources; other < source && source->ce_source != NULL;
             other++) {
                if (other->ce_source != NULL && strcmp(other->ce_source, source->ce_source) == 0)
                        load_error(
                            findings, line != 0 ? line : ini_line(ini, "source", other->name, "ce_source"),
                            "[source %s] and [source %s] have the same ce_source, so their events could "
                            "not be told apart",
                            other->name, source->name);
        }
}

static void
check_source(struct config *config, struct config_source *source, const struct ini *ini,
             struct findings *findings)
{
        size_t line = ini_line(ini, "source", source->name, NULL);

        source->rules.source = source->name;
        set_event_names(config, source, ini, findings);
        if (config->verify) {
                source->rules.keys = source->keys;
                source->rules.n_keys = source->n_keys;
                source->rules.tolerance_ms = source->tolerance_ms;
        }
        if (source->header_prefix == NULL) {
                source->header_prefix = mem_printf("x-%s", source->name);
                for (char *c = source->header_prefix; *c != '\0'; c++) {
                        if (*c >= 'A' && *c <= 'Z')
                                *c = (char)(*c - 'A' + 'a');
                }
        }
        if (source->path == NULL && ini_line(ini, "source", source->name, "path") == 0)
                load_error(findings, line, "[source %s] needs a path", source->name);
        if (source->n_keys == 0 && ini_line(ini, "source", source->name, "secret_file") == 0 &&
            ini_line(ini, "source", source->name, "secret") == 0)
                finding_set_remedy(load_error(findings, line, "[source %s] needs a secret_file",
                                              source->name),
                                   "gatepost secret new " SYSCONFDIR
                                   "/gatepost/secrets/%s, and: secret_file = " SYSCONFDIR
                                   "/gatepost/secrets/%s",
                                   source->name, source->name);
        for (const struct config_source *other = config->sources; other < source && source->path != NULL;
             other++) {
                if (other->path != NULL && strcmp(other->path, source->path) == 0)
                        load_error(findings, ini_line(ini, "source", source->name, "path"),
                                   "[source %s] already has this path", other->name);
        }
}

/* Check a topic for events: it must be neither one of Gatepost's own, nor one of Kafka's. */
static void
check_topic(const struct config *config, const char *topic, size_t line, struct findings *findings)
{
        if (strcmp(topic, config->deliveries_topic) == 0 || strcmp(topic, config->quarantine_topic) == 0)
                load_error(findings, line, "%s cannot be used for events: it is one of Gatepost's own topics",
                           topic);
        if (strncmp(topic, "__", 2) == 0)
                load_error(findings, line,
                           "%s cannot be used for events: topics that begin with __ are Kafka's own", topic);
}

static void
set_topics(struct config *config, const struct ini *ini, struct findings *findings)
{
        char *prefix = config->topics_prefix;

        if (prefix == NULL)
                return; /* invalid, and reported */
        config->topics_prefix = NULL;
        config_set_topics(config, prefix);
        free(prefix);
        if (!topic_name_is_valid(config->quarantine_topic))
                load_error(findings, ini_line(ini, "topics", "", "prefix"),
                           "prefix is too long: %s is not a valid topic name", config->quarantine_topic);
        for (size_t i = 0; i < topic_table_size(config->topics); i++) {
                const struct topic_rule *rule = topic_table_rule(config->topics, i);

                check_topic(config, rule->topic, ini_line(ini, "events", "", rule->pattern), findings);
        }
}

/* Return the line of the later one of two options of a section. */
static size_t
later_line(const struct ini *ini, const char *section, const char *one, const char *other)
{
        size_t a = ini_line(ini, section, "", one), b = ini_line(ini, section, "", other);

        return a > b ? a : b;
}

/* Addresses that cannot be bound both would end the start. */
static void
check_addresses(const struct config *config, const struct ini *ini, struct findings *findings)
{
        if (config->n_listen > CONFIG_LISTEN_MAX)
                load_error(findings, ini_line(ini, "receiver", "", "listen"), "more than %d addresses",
                           CONFIG_LISTEN_MAX);
        for (size_t i = 0; i < config->n_listen; i++) {
                const struct config_listen *listen = &config->listen[i];

                for (size_t k = 0; k < i; k++) {
                        if (endpoint_conflicts(&config->listen[k], listen))
                                load_error(findings, config_line_of_value(config, listen->text),
                                           "listen: %.100s is in conflict with %.100s", listen->text,
                                           config->listen[k].text);
                }
                if (config->admin != NULL && endpoint_conflicts(config->admin, listen))
                        finding_set_remedy(load_error(findings, ini_line(ini, "admin", "", "listen"),
                                                      "[receiver] already listens on %s",
                                                      config->admin->text),
                                           "give the admin endpoint another port");
        }
}

/* A value of 0 is invalid and has been reported. */
static void
check_receiver(const struct config *config, const struct ini *ini, struct findings *findings)
{
        if (config->n_listen == 0 && ini_line(ini, "receiver", "", "listen") == 0)
                finding_set_remedy(load_error(findings, ini_line(ini, "receiver", "", NULL),
                                              "a receiver needs a `listen` in [receiver]"),
                                   "listen = 127.0.0.1:8080, or roles = router in [gatepost]");
        if (config->max_in_flight != 0 && config->max_body > config->max_in_flight)
                load_error(findings, later_line(ini, "receiver", "max_body", "max_in_flight"),
                           "max_in_flight is smaller than max_body: a delivery of that size would never be "
                           "accepted");
        if (config->requires_proxy && config->n_trusted_proxies == 0 && !config->trusts_unix_sockets)
                load_error(findings, ini_line(ini, "receiver", "", "proxy_protocol"),
                           "proxy_protocol = required needs a trusted_proxy");
        if (config->spool != NULL && unit_has_own(config->spool) && !unit_has_own(config->files[0].path))
                finding_set_remedy(load_error(findings, ini_line(ini, "receiver", "", "spool"),
                                              "spool: %.100s is deleted when the systemd unit stops, with "
                                              "deliveries that were answered 200",
                                              config->spool),
                                   "spool = " STATE_DIRECTORY "/spool");
        check_addresses(config, ini, findings);
}

/* Report an error in a TLS file. Only the key must be closed to others. */
static void
add_tls_problem(struct findings *findings, const struct ini *ini, const char *option, const char *path,
                const struct error *error)
{
        struct finding *finding =
            load_error(findings, ini_line(ini, "receiver", "", option), "%s: %s", option, error->text);

        if (strcmp(option, "tls_key_file") == 0 || access(path, R_OK) != 0)
                load_set_file_remedy(finding, path);
}

static void
read_tls_files(struct config *config, const struct ini *ini, struct findings *findings)
{
        struct error error;

        config->certificate = certificate_read(config->tls_certificate_file, &error);
        if (config->certificate == NULL) {
                add_tls_problem(findings, ini, "tls_certificate_file", config->tls_certificate_file, &error);
                return;
        }
        if (certificate_read_key(config->certificate, config->tls_key_file, &error) != 0)
                add_tls_problem(findings, ini, "tls_key_file", config->tls_key_file, &error);
        if (config->tls_client_ca_file != NULL &&
            certificate_read_authorities(config->certificate, config->tls_client_ca_file, &error) != 0)
                add_tls_problem(findings, ini, "tls_client_ca_file", config->tls_client_ca_file, &error);
        config_add_file(config, config->tls_certificate_file, &config->certificate->leaf_st, 0);
        config_add_file(config, config->tls_key_file, &config->certificate->key_st, 0);
        if (config->tls_client_ca_file != NULL)
                config_add_file(config, config->tls_client_ca_file, &config->certificate->authorities_st, 0);
}

/* A receiver must not go without TLS because one of its options is missing. */
static void
check_tls(struct config *config, const struct ini *ini, struct findings *findings)
{
        size_t certificate = ini_line(ini, "receiver", "", "tls_certificate_file");
        size_t key = ini_line(ini, "receiver", "", "tls_key_file");
        size_t authorities = ini_line(ini, "receiver", "", "tls_client_ca_file");

        if (certificate != 0 && key == 0)
                load_error(findings, certificate, "tls_certificate_file also needs tls_key_file");
        if (certificate == 0 && key != 0)
                load_error(findings, key, "tls_key_file also needs tls_certificate_file");
        if (certificate == 0 && key == 0 && authorities != 0)
                load_error(findings, authorities,
                           "tls_client_ca_file also needs tls_certificate_file and tls_key_file");
        if (config->tls_certificate_file != NULL && config->tls_key_file != NULL)
                read_tls_files(config, ini, findings);
}

/*
 * A delivery is accepted from tolerance before its timestamp to tolerance after it; it must be remembered
 * that long.
 */
static void
check_windows(const struct config *config, const struct ini *ini, struct findings *findings)
{
        for (size_t i = 0; i < config->n_sources && config->dedup_window_ms != 0; i++) {
                const struct config_source *source = &config->sources[i];
                size_t window = ini_line(ini, "router", "", "dedup_window");

                if (config->dedup_window_ms < 2 * source->tolerance_ms)
                        load_error(findings,
                                   window != 0 ? window : ini_line(ini, "source", source->name, "tolerance"),
                                   "dedup_window is shorter than twice the tolerance of [source %s]: a "
                                   "replay would still be fresh after the delivery is forgotten",
                                   source->name);
        }
}

static void
check_router(const struct config *config, const struct ini *ini, struct findings *findings)
{
        size_t batch = ini_line(ini, "router", "", "max_batch_bytes");

        if (config->max_batch_bytes != 0 && config->max_body > config->max_batch_bytes)
                load_error(findings, batch != 0 ? batch : ini_line(ini, "receiver", "", "max_body"),
                           "max_batch_bytes in [router] is smaller than max_body in [receiver]");
        if (config->spool != NULL && config->state != NULL && strcmp(config->spool, config->state) == 0)
                load_error(findings, ini_line(ini, "router", "", "state"),
                           "state: %.100s is the directory of the spool, too", config->state);
        check_windows(config, ini, findings);
}

/* Only the command line needs ca_file, so gatepostd need not be able to read it. */
static void
check_service(const struct config *config, const struct ini *ini, struct findings *findings)
{
        const char *ca_file = config->service_ca_file;
        struct error error;

        if (ca_file != NULL && (access(ca_file, R_OK) == 0 || errno != EACCES) &&
            certificate_check_authorities(ca_file, &error) != 0)
                load_error(findings, ini_line(ini, "service", "", "ca_file"), "ca_file: %s", error.text);
        if (config->service_api_key != NULL && config->service_api_key_file != NULL)
                load_error(findings, later_line(ini, "service", "api_key", "api_key_file"),
                           "set either api_key or api_key_file, not both");
}

static void
check_admin(const struct config *config, const struct ini *ini, struct findings *findings)
{
        if (config->admin != NULL && !config->admin_allows_remote && !endpoint_is_private(config->admin))
                finding_set_remedy(load_error(findings, ini_line(ini, "admin", "", "listen"),
                                              "listen: %.100s can be reached from other machines, and the "
                                              "admin endpoint has no authentication",
                                              config->admin->text),
                                   "listen = 127.0.0.1:9464, or allow_remote = on");
}

/*
 * If fetch.max.bytes is not set, librdkafka itself refuses a receive.message.max.bytes below the default of
 * fetch.max.bytes.
 */
static void
check_receive_limit(struct config *config, const struct ini *ini, struct findings *findings)
{
        int64_t needed = config_receive_needed(config, config_max_record(config));
        size_t line = ini_line(ini, "kafka", "", "receive.message.max.bytes");

        if (line != 0 && config_receive_limit(config) < needed)
                load_error(findings, line,
                           "receive.message.max.bytes is too small for max_body or fetch.max.bytes: it needs "
                           "at least "
                           "%" PRId64,
                           needed);
}

void
check_config(struct config *config, const struct ini *ini, struct findings *findings)
{
        set_default_instance(config, findings);
        if (config->n_sources == 0)
                load_error(findings, 0,
                           "there is no source, such as [source invoicing] with a path and a secret_file");
        for (size_t i = 0; i < config->n_sources; i++)
                check_source(config, &config->sources[i], ini, findings);
        set_topics(config, ini, findings);
        if (config->roles & CONFIG_RECEIVER) {
                check_receiver(config, ini, findings);
                check_tls(config, ini, findings);
        }
        check_router(config, ini, findings);
        check_service(config, ini, findings);
        check_admin(config, ini, findings);
        if (config->roles & CONFIG_ROUTER)
                check_receive_limit(config, ini, findings);
        if (!config->embedded && config_property(config, "bootstrap.servers") == NULL &&
            ini_line(ini, "kafka", "", "bootstrap.servers") == 0)
                load_error(
                    findings, ini_line(ini, "kafka", "", NULL),
                    "[kafka] needs bootstrap.servers: a list of brokers, or `embedded` for experiments");
        check_kafka(config, ini, findings);
        if (findings_count(findings, FINDING_ERROR) == 0)
                warn_about(config, ini, findings);
}
