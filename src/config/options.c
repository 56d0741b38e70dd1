#include "config/options.h"

#include <string.h>

#include "base/compiler.h"
#include "base/text.h"
#include "config/config.h"

#define AT(field) offsetof(struct config, field)
#define IN_SOURCE(field) offsetof(struct config_source, field)

#define SECOND UINT64_C(1000)
#define MINUTE (60 * SECOND)
#define DAY (1440 * MINUTE)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* clang-format off */
static const struct option_row options[] = {
    {"gatepost", "roles", OPTION_ROLES, "receiver, router", 0, 0, AT(roles), OPTION_RESTART,
     "roles of this process: receiver, router or both"},
    {"gatepost", "instance", OPTION_NAME, NULL, 1, 100, AT(instance), OPTION_RESTART,
     "name of this process, which must differ between routers; default: the host name"},
    {"gatepost", "log_level", OPTION_LEVEL, "info", 0, 0, AT(log_level), 0,
     "least urgent level to log: debug, info, notice, warning or error"},

    {"receiver", "listen", OPTION_LISTEN, NULL, 0, 0, AT(listen), OPTION_REPEATABLE | OPTION_RESTART,
     "address for deliveries: ADDRESS:PORT, [IPv6]:PORT or unix:PATH"},
    {"receiver", "threads", OPTION_NUMBER, "1", 1, 64, AT(threads), OPTION_RESTART,
     "number of receiver threads"},
    {"receiver", "max_body", OPTION_SIZE, "1MiB", KIB, 64 * MIB, AT(max_body), OPTION_RESTART,
     "maximum size of a body"},
    {"receiver", "max_in_flight", OPTION_SIZE, "64MiB", KIB, 64 * GIB, AT(max_in_flight), 0,
     "memory budget for bodies in flight; others wait and are then answered 503"},
    {"receiver", "max_connections", OPTION_NUMBER, "4096", 1, 1000000, AT(max_connections), 0,
     "maximum number of open connections"},
    {"receiver", "max_connections_per_address", OPTION_NUMBER, "0", 0, 1000000,
     AT(max_connections_per_address), 0, "maximum number of open connections of an address; 0: no limit"},
    {"receiver", "max_refusals_per_address", OPTION_NUMBER, "0", 0, 1000000, AT(max_refusals_per_address), 0,
     "refused requests of an address per second before further ones are answered 429; 0: no limit"},
    {"receiver", "trusted_proxy", OPTION_PROXY, NULL, 0, 0, 0, OPTION_REPEATABLE,
     "proxy that is trusted to name the client: ADDRESS, NETWORK/BITS or unix"},
    {"receiver", "proxy_protocol", OPTION_REQUIRED, "off", 0, 0, AT(requires_proxy), 0,
     "required: connections begin with a header of the PROXY protocol v2, from a trusted_proxy"},
    {"receiver", "max_headers", OPTION_NUMBER, "100", 10, 1000, AT(max_headers), 0,
     "maximum number of header lines of a request"},
    {"receiver", "header_timeout", OPTION_DURATION, "10s", 100, 10 * MINUTE, AT(header_timeout_ms), 0,
     "time from the first byte of a request to the end of its header section"},
    {"receiver", "request_timeout", OPTION_DURATION, "30s", 100, 60 * MINUTE, AT(request_timeout_ms), 0,
     "time from the first byte of a request to the end of its body"},
    {"receiver", "idle_timeout", OPTION_DURATION, "60s", 100, 60 * MINUTE, AT(idle_timeout_ms), 0,
     "time that a connection may wait for its next request"},
    {"receiver", "ack_timeout", OPTION_DURATION, "8s", 100, 5 * MINUTE, AT(ack_timeout_ms), OPTION_RESTART,
     "time that a delivery may wait for Kafka before it is answered 503"},
    {"receiver", "spool", OPTION_DIRECTORY, NULL, 0, 0, AT(spool), OPTION_RESTART,
     "directory for deliveries while Kafka does not acknowledge them; default: none"},
    {"receiver", "spool_max", OPTION_SIZE, "10GiB", MIB, 1024 * GIB, AT(spool_max), OPTION_RESTART,
     "maximum size of the spool; further deliveries are answered 503"},
    {"receiver", "handshake_timeout", OPTION_DURATION, "10s", 100, 10 * MINUTE, AT(handshake_timeout_ms), 0,
     "time from accepting a connection to the end of its TLS handshake"},
    {"receiver", "tls_certificate_file", OPTION_FILE, NULL, 0, 0, AT(tls_certificate_file), 0,
     "certificate and chain (PEM); enables TLS"},
    {"receiver", "tls_key_file", OPTION_FILE, NULL, 0, 0, AT(tls_key_file), 0,
     "private key of the certificate (PEM), which others may not read"},
    {"receiver", "tls_client_ca_file", OPTION_FILE, NULL, 0, 0, AT(tls_client_ca_file), 0,
     "authorities for client certificates (PEM); makes client certificates mandatory"},

    {"router", "dedup_window", OPTION_DURATION, "3d", SECOND, 90 * DAY, AT(dedup_window_ms), OPTION_RESTART,
     "time for which duplicates are recognised; the retention of deliveries must be longer"},
    {"router", "state", OPTION_DIRECTORY, NULL, 0, 0, AT(state), OPTION_RESTART,
     "directory for the dedup tables, so that a restart need not read them from Kafka; default: none"},
    {"router", "standby", OPTION_SWITCH, "off", 0, 0, AT(standby), OPTION_RESTART,
     "keep the dedup tables of the partitions of other routers, too, to take them over at once"},
    {"router", "max_batch", OPTION_NUMBER, "30000", 1, 1000000, AT(max_batch), 0,
     "maximum number of records in a transaction"},
    {"router", "max_batch_bytes", OPTION_SIZE, "32MiB", KIB, GIB, AT(max_batch_bytes), 0,
     "maximum size of the bodies in a transaction"},
    {"router", "verify", OPTION_SWITCH, "off", 0, 0, AT(verify), 0,
     "verify each record again, and quarantine it as unverified if that fails"},

    {"source", "path", OPTION_PATH, NULL, 0, 0, IN_SOURCE(path), 0,
     "path to which the service delivers"},
    {"source", "header_prefix", OPTION_HEADER, NULL, 0, 0, IN_SOURCE(header_prefix), 0,
     "prefix of the four headers; default: x- and the name of the source"},
    {"source", "secret_file", OPTION_SECRET_FILE, NULL, 0, 0, 0, OPTION_REPEATABLE,
     "file with a signing secret, which others may not read; all are tried"},
    {"source", "secret", OPTION_SECRET, NULL, 0, 0, 0, OPTION_REPEATABLE,
     "signing secret itself; then others may not read this file"},
    {"source", "webhook_id", OPTION_WEBHOOK_ID, NULL, 0, 0, IN_SOURCE(webhook_ids), OPTION_REPEATABLE,
     "accept only deliveries of this subscription; default: of all"},
    {"source", "tolerance", OPTION_DURATION, "300s", SECOND, 7 * DAY, IN_SOURCE(tolerance_ms), 0,
     "maximum difference between the signed timestamp and now"},
    {"source", "replay_guard", OPTION_SWITCH, "on", 0, 0, IN_SOURCE(replay_guard), 0,
     "detect a signature that is used again with another delivery-id"},
    {"source", "kind", OPTION_POINTER, "/event", 0, 0, IN_SOURCE(rules.kind), 0,
     "JSON pointer to the event kind in the body"},
    {"source", "key", OPTION_KEY, "kind", 0, 0, IN_SOURCE(rules), 0,
     "key of event records: kind, delivery-id, webhook-id or a JSON pointer"},
    {"source", "subject", OPTION_POINTER, NULL, 0, 0, IN_SOURCE(rules.subject), 0,
     "JSON pointer to the value of ce_subject; no default"},
    {"source", "ce_source", OPTION_CE_SOURCE, NULL, 1, RULES_SOURCE_MAX, IN_SOURCE(ce_source), 0,
     "ce_source of events, a URI or a path; default: a slash and the name of the source"},
    {"source", "ce_type_prefix", OPTION_CE_TYPE, NULL, 1, RULES_TYPE_PREFIX_MAX, IN_SOURCE(ce_type_prefix), 0,
     "text before the kind in ce_type, such as com.example.; no default"},
    {"source", "ce_dataschema_base", OPTION_CE_SCHEMA, NULL, 1, RULES_SCHEMA_BASE_MAX,
     IN_SOURCE(ce_dataschema_base), 0,
     "URI of the directory with the schemas, for ce_dataschema; no default"},

    {"topics", "prefix", OPTION_NAME, "gatepost", 1, 200, AT(topics_prefix), OPTION_RESTART,
     "prefix of topics and of the consumer group"},

    {"admin", "listen", OPTION_ADMIN, "127.0.0.1:9464", 0, 0, AT(admin), OPTION_RESTART,
     "address of status page, /metrics, /healthz, /readyz: loopback, unix:PATH, or off"},
    {"admin", "allow_remote", OPTION_SWITCH, "off", 0, 0, AT(admin_allows_remote), OPTION_RESTART,
     "allow [admin] an address that others can reach, without TLS, and any host name"},

    {"service", "base_url", OPTION_URL, NULL, 0, 0, AT(service_base_url), 0,
     "URL of the service's API, with its version"},
    {"service", "api_key_file", OPTION_API_KEY_FILE, NULL, 0, 0, AT(service_api_key_file), 0,
     "file with the API key, which others may not read"},
    {"service", "api_key", OPTION_API_KEY, NULL, 0, 0, AT(service_api_key), 0,
     "API key itself; then others may not read this file"},
    {"service", "ca_file", OPTION_FILE, NULL, 0, 0, AT(service_ca_file), 0,
     "authorities to trust for the service instead of the system's (PEM)"},
};
/* clang-format on */

static const char *const sections[] = {"gatepost", "receiver", "router", "source", "topics",
                                       "events",   "kafka",    "admin",  "service"};

size_t
options_count(void)
{
        return ARRAY_LEN(options);
}

const struct option_row *
options_at(size_t index)
{
        return &options[index];
}

const struct option_row *
options_find(const char *section, const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(options); i++) {
                if (strcmp(options[i].section, section) == 0 && strcmp(options[i].name, name) == 0)
                        return &options[i];
        }
        return NULL;
}

const char *
options_suggest(const char *section, const char *name)
{
        const char *names[ARRAY_LEN(options)];
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(options); i++) {
                if (strcmp(options[i].section, section) == 0)
                        names[n++] = options[i].name;
        }
        return text_closest(name, names, n);
}

const char *
options_suggest_section(const char *section)
{
        return text_closest(section, sections, ARRAY_LEN(sections));
}

const char *
options_section_of(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(options); i++) {
                if (strcmp(options[i].name, name) == 0)
                        return options[i].section;
        }
        return NULL;
}

int
options_is_section(const char *section)
{
        for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
                if (strcmp(sections[i], section) == 0)
                        return 1;
        }
        return 0;
}

int
options_is_free_form(const char *section)
{
        return strcmp(section, "events") == 0 || strcmp(section, "kafka") == 0;
}
