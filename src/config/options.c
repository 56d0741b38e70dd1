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
     "what this process does: receiver, router or both"},
    {"gatepost", "instance", OPTION_NAME, NULL, 1, 100, AT(instance), OPTION_RESTART,
     "its name among others, which must differ between routers; default: the host name"},
    {"gatepost", "log_level", OPTION_LEVEL, "info", 0, 0, AT(log_level), 0,
     "the least urgent lines of the log: debug, info, notice, warning or error"},

    {"receiver", "listen", OPTION_LISTEN, NULL, 0, 0, AT(listen), OPTION_REPEATABLE | OPTION_RESTART,
     "where deliveries come in: ADDRESS:PORT, [IPv6]:PORT or unix:PATH"},
    {"receiver", "threads", OPTION_NUMBER, "1", 1, 64, AT(threads), OPTION_RESTART,
     "lanes that receive side by side"},
    {"receiver", "max_body", OPTION_SIZE, "1MiB", KIB, 64 * MIB, AT(max_body), OPTION_RESTART,
     "the largest body of a delivery"},
    {"receiver", "max_in_flight", OPTION_SIZE, "64MiB", KIB, 64 * GIB, AT(max_in_flight), 0,
     "memory for the bodies of deliveries in flight; what does not fit waits, and is then answered 503"},
    {"receiver", "max_connections", OPTION_NUMBER, "4096", 1, 1000000, AT(max_connections), 0,
     "connections that may be open"},
    {"receiver", "max_connections_per_address", OPTION_NUMBER, "0", 0, 1000000,
     AT(max_connections_per_address), 0, "connections that one address may have open; 0: no limit of its own"},
    {"receiver", "max_refusals_per_address", OPTION_NUMBER, "0", 0, 1000000, AT(max_refusals_per_address), 0,
     "requests of one address that are refused in a second before others are answered 429; 0: no limit"},
    {"receiver", "trusted_proxy", OPTION_PROXY, NULL, 0, 0, 0, OPTION_REPEATABLE,
     "proxies that may say who the client is: ADDRESS, NETWORK/BITS or unix"},
    {"receiver", "proxy_protocol", OPTION_REQUIRED, "off", 0, 0, AT(requires_proxy), 0,
     "required: each connection begins with the header of the PROXY protocol v2, from a trusted_proxy"},
    {"receiver", "max_headers", OPTION_NUMBER, "100", 10, 1000, AT(max_headers), 0,
     "header lines of a request"},
    {"receiver", "header_timeout", OPTION_DURATION, "10s", 100, 10 * MINUTE, AT(header_timeout_ms), 0,
     "from the first byte of a request to the end of its headers"},
    {"receiver", "request_timeout", OPTION_DURATION, "30s", 100, 60 * MINUTE, AT(request_timeout_ms), 0,
     "from the first byte of a request to the end of its body"},
    {"receiver", "idle_timeout", OPTION_DURATION, "60s", 100, 60 * MINUTE, AT(idle_timeout_ms), 0,
     "how long a connection may wait for its next request"},
    {"receiver", "ack_timeout", OPTION_DURATION, "8s", 100, 5 * MINUTE, AT(ack_timeout_ms), OPTION_RESTART,
     "how long a delivery may wait for Kafka before it is answered 503"},
    {"receiver", "handshake_timeout", OPTION_DURATION, "10s", 100, 10 * MINUTE, AT(handshake_timeout_ms), 0,
     "from the accepting of a connection to the end of its TLS handshake"},
    {"receiver", "tls_certificate_file", OPTION_FILE, NULL, 0, 0, AT(tls_certificate_file), 0,
     "the certificate and its chain (PEM); given: deliveries come by TLS"},
    {"receiver", "tls_key_file", OPTION_FILE, NULL, 0, 0, AT(tls_key_file), 0,
     "the certificate's private key (PEM), which others may not read"},
    {"receiver", "tls_client_ca_file", OPTION_FILE, NULL, 0, 0, AT(tls_client_ca_file), 0,
     "authorities (PEM) that sign clients' certificates; given: a client needs one"},

    {"router", "dedup_window", OPTION_DURATION, "3d", SECOND, 90 * DAY, AT(dedup_window_ms), OPTION_RESTART,
     "how long repeats are recognised; the retention of the topic deliveries must be longer"},
    {"router", "max_batch", OPTION_NUMBER, "10000", 1, 1000000, AT(max_batch), 0,
     "records in a transaction"},
    {"router", "max_batch_bytes", OPTION_SIZE, "32MiB", KIB, GIB, AT(max_batch_bytes), 0,
     "bytes of bodies in a transaction"},
    {"router", "verify", OPTION_SWITCH, "off", 0, 0, AT(verify), 0,
     "check the signature and age of each record again, and quarantine what fails as unverified"},

    {"source", "path", OPTION_PATH, NULL, 0, 0, IN_SOURCE(path), 0,
     "the path that the service delivers to"},
    {"source", "header_prefix", OPTION_HEADER, NULL, 0, 0, IN_SOURCE(header_prefix), 0,
     "what the four headers begin with; default: x- and the source's name"},
    {"source", "secret_file", OPTION_SECRET_FILE, NULL, 0, 0, 0, OPTION_REPEATABLE,
     "a file with the signing secret, which others may not read; all are tried"},
    {"source", "secret", OPTION_SECRET, NULL, 0, 0, 0, OPTION_REPEATABLE,
     "the signing secret itself; then others may not read this file"},
    {"source", "webhook_id", OPTION_WEBHOOK_ID, NULL, 0, 0, IN_SOURCE(webhook_ids), OPTION_REPEATABLE,
     "let in this subscription's deliveries only; without any, all are let in"},
    {"source", "tolerance", OPTION_DURATION, "300s", SECOND, 7 * DAY, IN_SOURCE(tolerance_ms), 0,
     "how far the signed timestamp may be from now, both ways"},
    {"source", "replay_guard", OPTION_SWITCH, "on", 0, 0, IN_SOURCE(replay_guard), 0,
     "notice a signature that comes again under another delivery-id"},
    {"source", "kind", OPTION_POINTER, "/event", 0, 0, IN_SOURCE(rules.kind), 0,
     "where the body names the event's kind"},
    {"source", "key", OPTION_KEY, "kind", 0, 0, IN_SOURCE(rules), 0,
     "the event records' key: kind, delivery-id, webhook-id or a JSON pointer"},
    {"source", "subject", OPTION_POINTER, NULL, 0, 0, IN_SOURCE(rules.subject), 0,
     "a JSON pointer to what becomes ce_subject; without it there is none"},

    {"topics", "prefix", OPTION_NAME, "gatepost", 1, 200, AT(topics_prefix), OPTION_RESTART,
     "what topics and the consumer group begin with"},

    {"admin", "listen", OPTION_ADMIN, "127.0.0.1:9464", 0, 0, AT(admin), OPTION_RESTART,
     "the status page, /metrics, /healthz and /readyz: a loopback address, unix:PATH, or off"},
    {"admin", "allow_remote", OPTION_SWITCH, "off", 0, 0, AT(admin_allows_remote), OPTION_RESTART,
     "let [admin] listen where others can reach it, and by any name, without TLS: who may connect is for a firewall to say"},

    {"service", "base_url", OPTION_URL, NULL, 0, 0, AT(service_base_url), 0,
     "the service's own interface, with its version"},
    {"service", "api_key_file", OPTION_PRIVATE_FILE, NULL, 0, 0, AT(service_api_key_file), 0,
     "a file with the API key, which others may not read"},
    {"service", "api_key", OPTION_API_KEY, NULL, 0, 0, AT(service_api_key), 0,
     "the API key itself; then others may not read this file"},
    {"service", "ca_file", OPTION_FILE, NULL, 0, 0, AT(service_ca_file), 0,
     "certificates (PEM) of the authorities to trust, instead of the system's"},
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
