#include "config/load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/number.h"
#include "config/certificate.h"
#include "config/kafka_properties.h"

/*
 * Properties that librdkafka accepts one by one and that do not work together, or that brokers refuse later:
 * librdkafka would log that again and again, or try to connect for ever.
 */

/* Kafka's defaults of limits that brokers enforce. */
#define BROKERS_LEAST_SESSION_MS 6000
#define BROKERS_LONGEST_SESSION_MS 1800000
#define BROKERS_LONGEST_TRANSACTION_MS 900000

#define LEAST_TRANSACTION_MS 5000
#define LONG_WAIT_MS 1000
#define DEFAULT_HEARTBEAT_MS 3000 /* librdkafka's */

struct check {
        const struct config *config;
        const struct ini *ini;
        struct problems *problems;
        struct kafka_properties *properties;
};

/* Return a property by its own name, whatever name it was set by; NULL if it is not set. */
static const struct config_property *
find(const struct check *check, const char *own_name)
{
        for (size_t i = 0; i < check->config->n_kafka; i++) {
                const struct config_property *property = &check->config->kafka[i];
                const char *own = kafka_properties_find(check->properties, property->name);

                if (own != NULL && strcmp(own, own_name) == 0)
                        return property;
        }
        return NULL;
}

/* Return the line that sets a property, also one from a file. */
static size_t
line_of(const struct check *check, const struct config_property *property)
{
        char *from_file = mem_printf("%s_file", property->name);
        size_t line = ini_line(check->ini, "kafka", "", property->name);

        if (line == 0)
                line = ini_line(check->ini, "kafka", "", from_file);
        if (line == 0 && strcmp(property->name, "bootstrap.servers") == 0)
                line = ini_line(check->ini, "kafka", "", "metadata.broker.list");
        free(from_file);
        return line;
}

static int64_t
number_of(const struct check *check, const char *own_name, int64_t unset)
{
        const struct config_property *property = find(check, own_name);

        return property == NULL ? unset : strtoll(property->value, NULL, 0);
}

/* Whether a property is set to this, as librdkafka reads a boolean: true, t or 1; false, f or 0. */
static int
is_set_to(const struct config_property *property, const char *word)
{
        const char letter[] = {word[0], '\0'}, *digit = word[0] == 't' ? "1" : "0";

        return property != NULL &&
               (strcasecmp(property->value, word) == 0 || strcasecmp(property->value, letter) == 0 ||
                strcmp(property->value, digit) == 0);
}

static void
check_brokers(const struct check *check)
{
        const struct config_property *brokers = find(check, "metadata.broker.list");
        const char *broker = NULL, *fault;
        size_t len = 0;

        fault = brokers == NULL ? NULL : config_brokers_fault(brokers->value, &broker, &len);
        if (fault == NULL)
                return;
        problems_add(check->problems, line_of(check, brokers), "%s: '%.*s': %s", brokers->name, (int)len,
                     broker, fault);
}

/* Return the value of security.protocol in lower case. */
static const char *
protocol_of(const struct check *check)
{
        static const char *const protocols[] = {"plaintext", "ssl", "sasl_plaintext", "sasl_ssl"};
        const struct config_property *property = find(check, "security.protocol");

        for (size_t i = 0; property != NULL && i < ARRAY_LEN(protocols); i++) {
                if (strcasecmp(property->value, protocols[i]) == 0)
                        return protocols[i];
        }
        return "plaintext";
}

/* A password that is configured and not used is more likely a forgotten protocol than a left-over. */
static void
check_unused_sasl(const struct check *check)
{
        static const char *const names[] = {"sasl.mechanisms", "sasl.username", "sasl.password"};

        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                const struct config_property *property = find(check, names[i]);

                if (property == NULL)
                        continue;
                problems_add(check->problems, line_of(check, property),
                             "%s has no effect without security.protocol = SASL_SSL or SASL_PLAINTEXT",
                             property->name);
                return;
        }
}

/* Whether librdkafka was built with OIDC; Debian 12's was not. */
static int
supports_oidc(void)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, "sasl.oauthbearer.method", "oidc", NULL, 0);

        rd_kafka_conf_destroy(conf);
        return result == RD_KAFKA_CONF_OK;
}

static void
check_oauthbearer(const struct check *check, size_t line)
{
        const struct config_property *method = find(check, "sasl.oauthbearer.method");
        const struct config_property *unsecured = find(check, "enable.sasl.oauthbearer.unsecure.jwt");

        if ((method == NULL || strcasecmp(method->value, "oidc") != 0) && !is_set_to(unsecured, "true"))
                problems_add(
                    check->problems, line, "OAUTHBEARER has no source of tokens: %s",
                    supports_oidc()
                        ? "set sasl.oauthbearer.method = oidc, and sasl.oauthbearer.token.endpoint.url, "
                          "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret_file"
                        : "it needs a librdkafka with OIDC, which this one lacks; use another mechanism");
}

/* Return whether it is one of the mechanisms of Kafka that librdkafka has; if not, report it. */
static int
check_mechanism(const struct check *check, const char *name, size_t line)
{
        static const char *const mechanisms[] = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI",
                                                 "OAUTHBEARER"};
        const char *other = NULL;

        for (size_t i = 0; i < ARRAY_LEN(mechanisms); i++) {
                if (strcmp(name, mechanisms[i]) == 0)
                        return 1;
                if (strcasecmp(name, mechanisms[i]) == 0)
                        other = mechanisms[i];
        }
        problems_add(check->problems, line,
                     "'%.64s' is not a mechanism of Kafka; expected PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, "
                     "GSSAPI or OAUTHBEARER%s%s%s",
                     name, other == NULL ? "" : "; did you mean ", other == NULL ? "" : other,
                     other == NULL ? "" : "?");
        return 0;
}

/* Without a mechanism librdkafka uses GSSAPI, which takes no password. */
static void
check_sasl(const struct check *check)
{
        const struct config_property *mechanism = find(check, "sasl.mechanisms");
        const struct config_property *username = find(check, "sasl.username");
        const struct config_property *password = find(check, "sasl.password");
        const char *name = mechanism == NULL ? "GSSAPI" : mechanism->value;
        size_t line = line_of(check, mechanism != NULL ? mechanism : find(check, "security.protocol"));

        if (!check_mechanism(check, name, line))
                return;
        if (strcmp(name, "OAUTHBEARER") == 0)
                check_oauthbearer(check, line);
        else if (strcmp(name, "GSSAPI") == 0 && (username != NULL || password != NULL))
                problems_add(check->problems, line,
                             "%s, which takes no user name and no password; set sasl.mechanism to PLAIN, "
                             "SCRAM-SHA-256 "
                             "or SCRAM-SHA-512",
                             mechanism == NULL ? "sasl.mechanism is not set and defaults to GSSAPI"
                                               : "the mechanism is GSSAPI");
        else if (strcmp(name, "GSSAPI") == 0)
                problems_warn(check->problems, line,
                              "%sGSSAPI needs a Kerberos ticket in the environment of gatepostd "
                              "(KRB5_CLIENT_KTNAME or KRB5CCNAME); it runs no kinit",
                              mechanism == NULL ? "sasl.mechanism is not set and defaults to GSSAPI; " : "");
        else if (username == NULL || password == NULL)
                problems_add(check->problems, line, "%s needs %s", name,
                             username != NULL   ? "sasl.password_file"
                             : password != NULL ? "sasl.username"
                                                : "sasl.username and sasl.password_file");
        else if (strncmp(username->value, "User:", strlen("User:")) == 0)
                problems_warn(check->problems, line_of(check, username),
                              "sasl.username: leave out User:, which belongs to the names in ACLs only");
}

/* librdkafka presents a certificate only with its key, and does not say that there is none. */
static void
warn_about_certificate_alone(const struct check *check)
{
        static const char *const keys[] = {"ssl.key.location", "ssl.key.pem", "ssl.keystore.location"};
        const struct config_property *certificate = find(check, "ssl.certificate.location");

        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
                if (find(check, keys[i]) != NULL)
                        return;
        }
        if (certificate != NULL)
                problems_warn(check->problems, line_of(check, certificate),
                              "%s has no effect without its key: the brokers get no certificate; set "
                              "ssl.key.location",
                              certificate->name);
}

static void
warn_about_authorities(const struct check *check)
{
        const struct config_property *authorities = find(check, "ssl.ca.location");

        if (authorities != NULL && certificate_lacks_hashes(authorities->value))
                problems_warn(
                    check->problems, line_of(check, authorities),
                    "%s: no broker is trusted, because a directory needs names by `openssl rehash`; "
                    "name the file",
                    authorities->name);
}

static void
warn_about_tls(const struct check *check, const char *protocol)
{
        const struct config_property *verification = find(check, "enable.ssl.certificate.verification");
        const struct config_property *names = find(check, "ssl.endpoint.identification.algorithm");
        int is_on = strstr(protocol, "ssl") != NULL;

        if (is_on && is_set_to(verification, "false"))
                problems_warn(
                    check->problems, line_of(check, verification),
                    "anybody on the way to the brokers can read and change records: their certificates are "
                    "not verified; set ssl.ca.location instead");
        if (is_on && names != NULL && strcasecmp(names->value, "none") == 0)
                problems_warn(check->problems, line_of(check, names),
                              "any holder of a certificate of the trusted authorities can act as a broker");
        if (is_on) {
                warn_about_authorities(check);
                warn_about_certificate_alone(check);
        }
        for (size_t i = 0; !is_on && i < check->config->n_kafka; i++) {
                const struct config_property *property = &check->config->kafka[i];

                if (strncmp(property->name, "ssl.", 4) != 0)
                        continue;
                problems_warn(check->problems, line_of(check, property),
                              "%s has no effect without security.protocol = SSL or SASL_SSL", property->name);
                return;
        }
}

static void
check_security(const struct check *check)
{
        const char *protocol = protocol_of(check);

        if (check->config->embedded && strcmp(protocol, "plaintext") != 0)
                problems_add(check->problems, line_of(check, find(check, "security.protocol")),
                             "the embedded broker speaks PLAINTEXT only");
        else if (strncmp(protocol, "sasl", 4) == 0)
                check_sasl(check);
        else
                check_unused_sasl(check);
        if (strcmp(protocol, "sasl_plaintext") == 0)
                problems_warn(check->problems, line_of(check, find(check, "security.protocol")),
                              "SASL_PLAINTEXT does not encrypt; use SASL_SSL unless the network is trusted");
        warn_about_tls(check, protocol);
}

static void
check_linger(const struct check *check)
{
        const struct config_property *linger = find(check, "queue.buffering.max.ms");
        double linger_ms = linger == NULL ? 0 : strtod(linger->value, NULL);
        uint64_t ack_ms = check->config->ack_timeout_ms;
        char ack[NUMBER_TEXT_SIZE];

        if (!(check->config->roles & CONFIG_RECEIVER) || linger == NULL || ack_ms == 0)
                return;
        if (linger_ms >= (double)ack_ms)
                problems_add(
                    check->problems, line_of(check, linger),
                    "%s = %s: each delivery would wait for %s ms and be answered 503 after ack_timeout, %s",
                    linger->name, linger->value, linger->value, number_format_duration(ack_ms, ack));
        else if (linger_ms > LONG_WAIT_MS)
                problems_warn(check->problems, line_of(check, linger),
                              "each delivery waits for %s ms before it is sent", linger->value);
}

/* By default, brokers wait for 1 byte, up to 200 ms (kafka/consumer.c). */
static void
check_fetch(const struct check *check)
{
        const struct config_property *bytes = find(check, "fetch.min.bytes");
        int64_t wait_ms = number_of(check, "fetch.wait.max.ms", 0);

        if (wait_ms > LONG_WAIT_MS && number_of(check, "fetch.min.bytes", 1) > 1)
                problems_warn(check->problems, line_of(check, bytes),
                              "events may be %" PRId64
                              " ms late: brokers wait that long, fetch.wait.max.ms, for "
                              "%s bytes of deliveries; remove fetch.min.bytes",
                              wait_ms, bytes->value);
}

/* Warn of a time that brokers refuse: above or below their limit. */
static void
warn_of_limit(const struct check *check, const struct config_property *property, const char *side,
              const char *limit, int default_ms)
{
        problems_warn(check->problems, line_of(check, property),
                      "brokers refuse a %s %s their %s, by default %d", property->name, side, limit,
                      default_ms);
}

static void
check_session(const struct check *check)
{
        const struct config_property *session = find(check, "session.timeout.ms");
        const struct config_property *heartbeat = find(check, "heartbeat.interval.ms");
        int64_t session_ms =
            number_of(check, "session.timeout.ms", strtoll(KAFKA_SESSION_TIMEOUT_MS, NULL, 10));

        if (number_of(check, "heartbeat.interval.ms", DEFAULT_HEARTBEAT_MS) >= session_ms)
                problems_add(
                    check->problems, line_of(check, heartbeat != NULL ? heartbeat : session),
                    "heartbeat.interval.ms must be a third of session.timeout.ms or less; otherwise the "
                    "group expels the router again and again");
        else if (heartbeat != NULL && number_of(check, "heartbeat.interval.ms", 0) > session_ms / 3)
                problems_warn(check->problems, line_of(check, heartbeat),
                              "heartbeat.interval.ms is more than a third of session.timeout.ms (%" PRId64
                              "): a lost heartbeat or two make the group expel the router",
                              session_ms);
        else if (session_ms < BROKERS_LEAST_SESSION_MS)
                warn_of_limit(check, session, "below", "group.min.session.timeout.ms",
                              BROKERS_LEAST_SESSION_MS);
        else if (session_ms > BROKERS_LONGEST_SESSION_MS)
                warn_of_limit(check, session, "above", "group.max.session.timeout.ms",
                              BROKERS_LONGEST_SESSION_MS);
}

static void
check_transaction(const struct check *check)
{
        const struct config_property *timeout = find(check, "transaction.timeout.ms");
        int64_t timeout_ms = number_of(check, "transaction.timeout.ms", LEAST_TRANSACTION_MS);

        if (timeout_ms < LEAST_TRANSACTION_MS)
                problems_add(
                    check->problems, line_of(check, timeout),
                    "transaction.timeout.ms is at least %d: when a broker restarts, a commit takes seconds",
                    LEAST_TRANSACTION_MS);
        else if (timeout_ms > BROKERS_LONGEST_TRANSACTION_MS)
                warn_of_limit(check, timeout, "above", "transaction.max.timeout.ms",
                              BROKERS_LONGEST_TRANSACTION_MS);
}

/* Whether an error was found on a line of [kafka]: then properties may seem to be missing that are not. */
static int
has_error(const struct ini *ini, const struct problems *problems)
{
        for (size_t i = 0; i < problems->n; i++) {
                struct problem problem = problems->items[i];

                ini_locate(ini, &problem);
                if (problem.section != NULL && strcmp(problem.section, "kafka") == 0)
                        return 1;
        }
        return 0;
}

/* librdkafka 2.0.2 does not escape client.id in its statistics, which would not be JSON. */
static void
check_client_id(const struct check *check)
{
        const struct config_property *id = find(check, "client.id");

        if (id != NULL && strpbrk(id->value, "\"\\\t") != NULL)
                problems_add(check->problems, line_of(check, id),
                             "%s must not contain a quote, a backslash or a tab", id->name);
}

void
check_kafka(const struct config *config, const struct ini *ini, struct problems *problems)
{
        struct check check = {config, ini, problems, kafka_properties_new()};
        const struct config_property *debug = find(&check, "debug");
        int is_complete = !has_error(ini, problems);

        check_brokers(&check);
        check_client_id(&check);
        if (is_complete)
                check_security(&check);
        check_linger(&check);
        if (config->roles & CONFIG_ROUTER) {
                check_session(&check);
                check_transaction(&check);
                check_fetch(&check);
        }
        if (debug != NULL)
                problems_warn(problems, line_of(&check, debug), "debug makes librdkafka log a great deal");
        if (config->embedded && config->roles != (CONFIG_RECEIVER | CONFIG_ROUTER))
                problems_add(
                    problems, ini_line(ini, "kafka", "", "bootstrap.servers"),
                    "each gatepostd has an embedded broker of its own, so a receiver and a router must "
                    "be the same one: set roles = receiver, router in [gatepost]");
        else if (config->embedded)
                problems_warn(
                    problems, ini_line(ini, "kafka", "", "bootstrap.servers"),
                    "the embedded broker is for experiments: it forgets all records when gatepostd ends");
        kafka_properties_free(check.properties);
}
