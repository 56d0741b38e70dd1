#include "cli/doctor_kafka.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "base/clock.h"
#include "config/certificate.h"

/* One broker, step by step. */

#define DEFAULT_PORT "9092"

/* A check of one broker. */
struct check {
        struct doctor *doctor;
        const struct doctor_broker *broker;
        char name[DOCTOR_BROKER_TEXT_SIZE];
        struct addrinfo *addresses;
        struct dial dial;
};

int
doctor_broker_parse(const char *text, size_t len, struct doctor_broker *broker)
{
        const char *end = text + len, *slashes = memmem(text, len, "://", 3), *colon, *host_end;

        *broker = (struct doctor_broker){.id = -1};
        text = slashes == NULL ? text : slashes + 3;
        host_end = *text == '[' ? memchr(text, ']', (size_t)(end - text)) : NULL;
        colon = memchr(host_end == NULL ? text : host_end, ':',
                       (size_t)(end - (host_end == NULL ? text : host_end)));
        if (host_end != NULL)
                text++;
        else
                host_end = colon == NULL ? end : colon;
        (void)snprintf(broker->port, sizeof(broker->port), "%.*s", colon == NULL ? 4 : (int)(end - colon - 1),
                       colon == NULL ? DEFAULT_PORT : colon + 1);
        (void)snprintf(broker->host, sizeof(broker->host), "%.*s", (int)(host_end - text), text);
        return broker->host[0] == '\0' ? -1 : 0;
}

const char *
doctor_broker_format(const struct doctor_broker *broker, char text[DOCTOR_BROKER_TEXT_SIZE])
{
        int is_ipv6 = strchr(broker->host, ':') != NULL;

        (void)snprintf(text, DOCTOR_BROKER_TEXT_SIZE, is_ipv6 ? "[%s]:%s" : "%s:%s", broker->host,
                       broker->port);
        return text;
}

/*
 * The classic mistake of the first day: the first connection works, and then each client is sent to an
 * address that only the brokers themselves can reach.
 */
static void
advise_on_address(const struct check *check)
{
        if (check->broker->id >= 0)
                doctor_remedy(check->doctor,
                              "broker %d advertises %s (its advertised.listeners), and every client connects "
                              "to the advertised address, not to bootstrap.servers: set advertised.listeners "
                              "of that broker to an address that this machine can resolve and reach",
                              (int)check->broker->id, check->name);
        else
                doctor_remedy(check->doctor,
                              "check bootstrap.servers in [kafka], DNS, /etc/hosts, firewalls, and that the "
                              "broker runs and listens there");
}

static const char *
prefix_of(const struct check *check)
{
        return check->broker->id < 0 ? "" : "advertised.listeners of the broker: this machine cannot ";
}

/* Return the family of addresses that librdkafka connects to: AF_UNSPEC for any. */
static int
family_of(const struct check *check)
{
        const char *family = config_property(check->doctor->config, "broker.address.family");

        if (family == NULL)
                return AF_UNSPEC;
        return strcasecmp(family, "v4") == 0 ? AF_INET : strcasecmp(family, "v6") == 0 ? AF_INET6 : AF_UNSPEC;
}

/* Report the addresses of the name, and keep those that librdkafka uses. Return whether there are any. */
static int
report_addresses(struct check *check)
{
        int family = family_of(check);
        char text[DIAL_TEXT_SIZE];

        (void)dial_format(check->addresses, text);
        dial_keep_family(&check->addresses, family);
        if (check->addresses != NULL) {
                doctor_pass(check->doctor, "%s", dial_format(check->addresses, text));
                return 1;
        }
        doctor_fail(check->doctor, EX_CONFIG, "%s is no address of IPv%d, but broker.address.family is %s",
                    text, family == AF_INET ? 4 : 6, family == AF_INET ? "v4" : "v6");
        doctor_remedy(check->doctor,
                      "remove broker.address.family from [kafka], or name the broker in %s by a "
                      "name that has such an address",
                      check->broker->id < 0 ? "bootstrap.servers" : "its advertised.listeners");
        return 0;
}

static int
resolve(struct check *check)
{
        struct error error;

        doctor_begin(check->doctor, "resolve", "%s", check->broker->host);
        if (dial_resolve(check->broker->host, check->broker->port, BROKER_DIALER_TIMEOUT_MS,
                         &check->addresses, &error) == 0)
                return report_addresses(check);
        doctor_fail(check->doctor, EX_UNAVAILABLE, "%s%s%s", prefix_of(check),
                    *prefix_of(check) == '\0' ? "" : "resolve this name: ", error.text);
        advise_on_address(check);
        return 0;
}

static int
connect_to(struct check *check)
{
        enum dial_failure failure;
        struct error error;

        doctor_begin(check->doctor, "connect", "%s", check->name);
        if (dial_connect(&check->dial, check->addresses, BROKER_DIALER_TIMEOUT_MS, &failure, &error) == 0) {
                doctor_pass(check->doctor, "%s", "connected");
                return 1;
        }
        doctor_fail(check->doctor, EX_UNAVAILABLE, "%s%s%s%s", prefix_of(check),
                    *prefix_of(check) == '\0' ? "" : "reach this address: ", error.text,
                    failure == DIAL_REFUSED     ? ": nothing listens on this port there"
                    : failure == DIAL_TIMED_OUT ? ": a wrong address, or a firewall drops the packets"
                                                : "");
        advise_on_address(check);
        return 0;
}

/* Close the connection and connect again, after an answer has used it up. */
static int
reconnect(struct check *check)
{
        enum dial_failure failure;
        struct error error;

        dial_close(&check->dial);
        return dial_connect(&check->dial, check->addresses, BROKER_DIALER_TIMEOUT_MS, &failure, &error) == 0;
}

/* Whether the broker's certificate is verified, unless enable.ssl.certificate.verification = false. */
static int
verifies(const struct check *check)
{
        return (SSL_get_verify_mode(check->dial.session) & SSL_VERIFY_PEER) != 0;
}

/* Judge how long the broker's certificate is valid, and the authorities by which it is verified, if it is. */
static enum certificate_state
judge_chain(const struct check *check, struct error *error)
{
        const STACK_OF(X509) *chain = verifies(check) ? SSL_get0_verified_chain(check->dial.session)
                                                      : SSL_get_peer_cert_chain(check->dial.session);

        return certificate_chain_state(chain, clock_now_ms() / 1000, "the broker's certificate", error);
}

/* Librdkafka refuses a certificate that has expired, too, unless it verifies none. */
static void
report_secured(struct check *check)
{
        const char *version = SSL_get_version(check->dial.session), *not = verifies(check) ? "" : "not ";
        struct error error;

        if (judge_chain(check, &error) == CERTIFICATE_VALID)
                doctor_pass(check->doctor, "%s, certificate %sverified", version, not );
        else
                doctor_warn(check->doctor, "%s, certificate %sverified; %s", version, not, error.text);
}

/* The broker's certificate is not verified. OpenSSL has the chain up to where it failed. */
static void
report_unverified(struct check *check, const struct error *why)
{
        struct doctor *doctor = check->doctor;
        long result = SSL_get_verify_result(check->dial.session);
        struct error error;

        if ((result == X509_V_ERR_CERT_HAS_EXPIRED || result == X509_V_ERR_CERT_NOT_YET_VALID) &&
            judge_chain(check, &error) == CERTIFICATE_UNUSABLE) {
                char *advice = strstr(error.text, "; renew it"); /* the remedy says where */

                if (advice != NULL)
                        *advice = '\0';
                doctor_fail(doctor, EX_UNAVAILABLE, "%s", error.text);
                doctor_remedy(doctor,
                              "renew that certificate at the brokers, and, if it is of an authority, in "
                              "ssl.ca.location in [kafka], too; if it should be valid, set the clock "
                              "of this machine");
                return;
        }
        doctor_fail(doctor, EX_UNAVAILABLE, "the broker's certificate: %s", why->text);
        doctor_remedy(doctor, "set ssl.ca.location in [kafka] to the authority that signed the broker's "
                              "certificate; after `hostname mismatch`, name the broker in "
                              "bootstrap.servers and advertised.listeners as its certificate does");
}

static int
secure(struct check *check)
{
        struct doctor *doctor = check->doctor;
        const char *protocol = broker_dialer_protocol(doctor->dialer);
        enum dial_failure failure;
        struct error error;

        doctor_begin(doctor, "tls", "%s", check->name);
        if (broker_dialer_secure(doctor->dialer, &check->dial, check->broker->host, &failure, &error) == 0) {
                report_secured(check);
                return 1;
        }
        if (verifies(check) && SSL_get_verify_result(check->dial.session) != X509_V_OK) {
                report_unverified(check, &error);
        } else if (broker_dialer_finds_plain(check->addresses)) {
                doctor_fail(doctor, EX_CONFIG, "this port does not speak TLS, but security.protocol is %s",
                            protocol);
                doctor_remedy(doctor,
                              "use the broker's port with TLS, or set security.protocol = %s in [kafka]",
                              broker_dialer_uses_login(doctor->dialer) ? "sasl_plaintext" : "plaintext");
        } else {
                doctor_fail(doctor, EX_UNAVAILABLE, "%s", error.text);
                doctor_remedy(doctor, "%s",
                              "see whether the port is a listener of Kafka with TLS, and whether "
                              "it requires a certificate: ssl.certificate.location and "
                              "ssl.key.location in [kafka]");
        }
        return 0;
}

/* Check that Kafka answers, and not a controller. */
static int
greet(struct check *check)
{
        struct doctor *doctor = check->doctor;
        enum dial_failure failure;
        struct error error;
        int is_controller, result = broker_dialer_greet(&check->dial, &is_controller, &failure, &error);

        if (result == 0 && !is_controller)
                return 1;
        doctor_begin(doctor, "kafka", "%s", check->name);
        if (result == 0) {
                doctor_fail(doctor, EX_CONFIG, "%s", "this is the listener of a KRaft controller");
                doctor_remedy(doctor, "%s",
                              "set bootstrap.servers in [kafka] to the listener of the brokers, usually port "
                              "9092 or 9094; see listeners and controller.listener.names in "
                              "server.properties of Kafka");
        } else if (!broker_dialer_uses_tls(doctor->dialer) && broker_dialer_finds_tls(check->addresses)) {
                doctor_fail(doctor, EX_CONFIG, "this port speaks TLS, but security.protocol is %s",
                            broker_dialer_protocol(doctor->dialer));
                doctor_remedy(doctor, "set security.protocol = %s in [kafka], or use a port without TLS",
                              broker_dialer_uses_login(doctor->dialer) ? "sasl_ssl" : "ssl");
        } else if (broker_dialer_uses_tls(doctor->dialer)) {
                doctor_fail(doctor, EX_UNAVAILABLE, "no answer after the handshake of TLS: %s", error.text);
                doctor_remedy(
                    doctor, "%s",
                    "if the broker requires certificates of its clients (ssl.client.auth), set "
                    "ssl.certificate.location and ssl.key.location in [kafka] to one that it trusts");
        } else {
                doctor_fail(doctor, EX_UNAVAILABLE, "no answer as from a broker of Kafka: %s", error.text);
                doctor_remedy(
                    doctor, "%s",
                    "check host and port of bootstrap.servers in [kafka]; if they are right, see "
                    "whether the broker limits connections (max.connections, max.connections.per.ip)");
        }
        return 0;
}

static void
report_rejected(struct doctor *doctor, const struct error *error)
{
        const char *user = config_property(doctor->config, "sasl.username");

        doctor_fail(doctor, EX_NOPERM, "the broker rejects the login of %.100s by %s: %s",
                    user == NULL ? "this account" : user, broker_dialer_mechanism(doctor->dialer),
                    error->text);
        doctor_remedy(doctor, "%s",
                      "check sasl.username and sasl.password_file in [kafka], and that the "
                      "account exists in Kafka for this mechanism");
}

static void
report_required(struct check *check)
{
        struct doctor *doctor = check->doctor;
        enum dial_failure failure;
        struct error list, error;
        int has_login = reconnect(check) &&
                        (!broker_dialer_uses_tls(doctor->dialer) ||
                         broker_dialer_secure(doctor->dialer, &check->dial, check->broker->host, &failure,
                                              &error) == 0) &&
                        broker_dialer_mechanisms(&check->dial, &list) == 0;

        if (has_login) {
                doctor_fail(doctor, EX_CONFIG, "this port requires a login (SASL; mechanisms: %s)",
                            list.text);
                doctor_remedy(doctor,
                              "set security.protocol = %s, sasl.mechanism, sasl.username and "
                              "sasl.password_file in [kafka]",
                              broker_dialer_uses_tls(doctor->dialer) ? "sasl_ssl" : "sasl_plaintext");
        } else {
                doctor_fail(doctor, EX_NOPERM, "%s", "the broker closes the connection at the first request");
                doctor_remedy(doctor, "%s", "see the broker's log");
        }
}

static int
login(struct check *check)
{
        struct doctor *doctor = check->doctor;
        const char *mechanism = broker_dialer_mechanism(doctor->dialer);
        int uses_login = broker_dialer_uses_login(doctor->dialer);
        struct error error;

        doctor_begin(doctor, "login", "%s", check->name);
        switch (broker_dialer_login(doctor->dialer, &check->dial, &error)) {
        case BROKER_LOGIN_DONE:
                doctor_pass(doctor, "%s%s", uses_login ? "by " : "none configured, none needed",
                            uses_login ? mechanism : "");
                return 1;
        case BROKER_LOGIN_UNSUPPORTED:
                doctor_skip(doctor, "%s, in the next step", error.text);
                return 1;
        case BROKER_LOGIN_REJECTED:
                report_rejected(doctor, &error);
                break;
        case BROKER_LOGIN_MECHANISM:
                doctor_fail(doctor, EX_CONFIG,
                            "the broker does not support sasl.mechanism = %s; it supports %s", mechanism,
                            error.text);
                doctor_remedy(doctor, "set sasl.mechanism in [kafka] to one of: %s", error.text);
                break;
        case BROKER_LOGIN_UNEXPECTED:
                doctor_fail(doctor, EX_CONFIG, "%s, but security.protocol is %s", error.text,
                            broker_dialer_protocol(doctor->dialer));
                doctor_remedy(doctor,
                              "use the broker's port with SASL, or set security.protocol = %s in [kafka]",
                              broker_dialer_uses_tls(doctor->dialer) ? "ssl" : "plaintext");
                break;
        case BROKER_LOGIN_REQUIRED:
                report_required(check);
                break;
        case BROKER_LOGIN_BROKEN:
                doctor_fail(doctor, EX_UNAVAILABLE, "%s", error.text);
                doctor_remedy(doctor, "%s", "see the broker's log");
                break;
        }
        return 0;
}

int
doctor_broker_check(struct doctor *doctor, struct doctor_broker *broker)
{
        struct check check = {.doctor = doctor, .broker = broker, .dial = {.fd = -1}};
        struct error ignored;
        int is_usable;

        (void)doctor_broker_format(broker, check.name);
        is_usable = resolve(&check) && connect_to(&check) &&
                    (!broker_dialer_uses_tls(doctor->dialer) || secure(&check)) && greet(&check) &&
                    login(&check);
        if (is_usable && broker_dialer_can_login(doctor->dialer))
                (void)!inquiry_cluster(&check.dial, broker->cluster, &ignored);
        dial_close(&check.dial);
        if (check.addresses != NULL)
                freeaddrinfo(check.addresses);
        return is_usable;
}
