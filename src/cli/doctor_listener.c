#include "cli/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include <openssl/x509.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/doctor_daemon.h"
#include "cli/own_url.h"
#include "cli/terminal.h"
#include "config/certificate.h"
#include "model/delivery_check.h"

/* The receiver's listeners, step by step: a connection, TLS as a sender sees it, and who answers. */

#define TIMEOUT_MS 5000
#define HEAD_MAX 4096
/* The PROXY protocol v2, command LOCAL: of the proxy itself. */
static const char proxy_header[] = "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

/* A check of one listener. */
struct listener_check {
        struct doctor *doctor;
        const struct config_listen *listen;
        struct own_address address;
        struct dial dial;
        int sends_header;      /* of the PROXY protocol */
        int wants_certificate; /* of the client; gatepostd asks for one only if it requires one */
};

/* Connect, and send the PROXY header if there is to be one. Returns 0, or -1 with the reason. */
static int
open_listener(struct listener_check *check, enum dial_failure *failure, struct error *error)
{
        dial_close(&check->dial);
        if (dial_connect(&check->dial, &check->address.info, TIMEOUT_MS, failure, error) != 0)
                return -1;
        return !check->sends_header ? 0
                                    : dial_send(&check->dial, proxy_header, sizeof(proxy_header) - 1,
                                                TIMEOUT_MS, failure, error);
}

/* Whether a connection failed since it is not of a trusted_proxy. Reports that. */
static int
is_untrusted(struct listener_check *check, enum dial_failure failure)
{
        if (!check->sends_header || failure != DIAL_CLOSED)
                return 0;
        check->doctor->is_untrusted = 1;
        doctor_skip(check->doctor,
                    "it accepts connections of a trusted_proxy only, which this machine is not");
        return 1;
}

static int
connect_to(struct listener_check *check)
{
        enum dial_failure failure;
        struct error error;

        doctor_begin(check->doctor, "listen", "%s", check->listen->text);
        if (open_listener(check, &failure, &error) == 0)
                return !doctor_socket_is_taken(check->doctor, check->listen);
        if (is_untrusted(check, failure)) /* it was closed before the header was sent */
                return 0;
        doctor_socket_report(check->doctor, check->listen, failure, &error);
        return 0;
}

/*
 * Write whose certificate the way from a verified certificate to its root needs and the server did not send:
 * this machine has it, others may not. Returns whether there is one.
 */
static int
find_unsent(SSL *session, char *name, size_t size)
{
        STACK_OF(X509) *path = SSL_get0_verified_chain(session), *sent = SSL_get_peer_cert_chain(session);

        for (int i = 1; i + 1 < sk_X509_num(path); i++) {
                const X509 *needed = sk_X509_value(path, i);
                int at = 0;

                while (at < sk_X509_num(sent) && X509_cmp(sk_X509_value(sent, at), needed) != 0)
                        at++;
                if (at < sk_X509_num(sent))
                        continue;
                (void)X509_NAME_oneline(X509_get_subject_name(needed), name, (int)size);
                return 1;
        }
        return 0;
}

/* Return what a certificate that this machine does not confirm, for this reason, is for the service. */
static const char *
consequence_of(long verified)
{
        switch (verified) {
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
                return ", unless it trusts the issuer; add missing intermediate certificates to the file";
        case X509_V_ERR_CERT_HAS_EXPIRED:
        case X509_V_ERR_CERT_NOT_YET_VALID:
                return "";
        default:
                return ", unless it trusts the issuer";
        }
}

/* After a handshake: is it the certificate of the configuration, and would a sender trust it? */
static void
report_certificate(struct listener_check *check)
{
        struct doctor *doctor = check->doctor;
        long verified = SSL_get_verify_result(check->dial.session);
        X509 *served = SSL_get1_peer_certificate(check->dial.session);
        const struct certificate *certificate = doctor->config->certificate;
        int is_same = certificate_is_sent(certificate, SSL_get_peer_cert_chain(check->dial.session));
        int has_same_leaf = served != NULL && X509_cmp(served, certificate->leaf) == 0;
        char names[200] = "", unsent[200], *reload;

        if (served != NULL)
                certificate_names(served, names, sizeof(names));
        X509_free(served);
        doctor->is_certificate_outdated |= !is_same;
        if (!is_same) {
                reload = doctor_daemon_reload(doctor);
                doctor_warn(doctor, "gatepostd serves another certificate%s than %s has: %s",
                            has_same_leaf ? " chain" : "", doctor->config->tls_certificate_file, reload);
                free(reload);
        } else if (verified != X509_V_OK)
                doctor_warn(
                    doctor,
                    "for %s; this machine's authorities do not confirm it (%s): the service will refuse it%s",
                    names, X509_verify_cert_error_string(verified), consequence_of(verified));
        else if (find_unsent(check->dial.session, unsent, sizeof(unsent)))
                doctor_warn(
                    doctor,
                    "for %s; gatepostd does not send the intermediate certificate %s, which this machine "
                    "happens to have: the service may refuse it; add it to %s",
                    names, unsent, doctor->config->tls_certificate_file);
        else
                doctor_pass(doctor, "%s, for %s, trusted by this machine's authorities",
                            SSL_get_version(check->dial.session), names);
}

/* OpenSSL calls this when the other side asks for a certificate of the client. Sends none. */
static int
on_certificate_wanted(SSL *session, X509 **certificate, EVP_PKEY **key)
{
        struct listener_check *check = SSL_CTX_get_app_data(SSL_get_SSL_CTX(session));

        (void)certificate;
        (void)key;
        check->wants_certificate = 1;
        return 0;
}

/* Report a connection that failed for want of a certificate of the client. */
static void
report_wanted(struct listener_check *check)
{
        struct doctor *doctor = check->doctor;
        char *reload;

        if (doctor->config->tls_client_ca_file != NULL) {
                doctor_skip(doctor, "it requires a certificate of the client, and this command has none");
                return;
        }
        doctor_fail(
            doctor, EX_CONFIG,
            "it requires a certificate of the client, but %s has no tls_client_ca_file: gatepostd runs "
            "with another configuration",
            doctor->file);
        reload = doctor_daemon_reload(doctor);
        doctor_remedy(doctor, "%s, or set tls_client_ca_file in [receiver] of %s", reload, doctor->file);
        free(reload);
}

/* Send a GET and read the head of the answer, all within TIMEOUT_MS. Returns 0, or -1 with the reason. */
static int
get(struct listener_check *check, const char *path, char head[HEAD_MAX], enum dial_failure *failure,
    struct error *error)
{
        char *request = mem_printf("GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: " DELIVERY_PROBE_AGENT
                                   "\r\nConnection: close\r\n"
                                   "\r\n",
                                   path);
        int64_t until_ms = clock_monotonic_ms() + TIMEOUT_MS, left_ms = TIMEOUT_MS;
        int result = dial_send(&check->dial, request, strlen(request), TIMEOUT_MS, failure, error);
        size_t len = 0;

        free(request);
        head[0] = '\0';
        while (result == 0 && len + 1 < HEAD_MAX && strstr(head, "\r\n\r\n") == NULL) {
                left_ms = until_ms - clock_monotonic_ms();
                *failure = DIAL_TIMED_OUT;
                if (left_ms <= 0 || terminal_is_interrupted())
                        return error_set(error, "the answer takes longer than %d s", TIMEOUT_MS / 1000);
                result = dial_receive(&check->dial, head + len, 1, (int)left_ms, failure, error);
                len += result == 0;
                head[len] = '\0';
        }
        return result;
}

/*
 * A GET is answered by gatepostd with an error, such as 405, 404 or 429, and always with a request id. By
 * 400, it would say that it is no GET: it may have taken the PROXY header for its beginning.
 */
static int
is_of_gatepostd(const char *head)
{
        static const char start[] = "HTTP/1.1 ";
        const char *status = head + strlen(start);

        return strncmp(head, start, strlen(start)) == 0 && (*status == '4' || *status == '5') &&
               strncmp(status, "400", 3) != 0 && strcasestr(head, "\r\nx-request-id:") != NULL;
}

/* Make a TLS handshake on the connection, which verifies nothing. Returns 0, or -1 with the reason. */
static int
shake_hands(struct listener_check *check, SSL_CTX *context, enum dial_failure *failure, struct error *error)
{
        SSL_CTX_set_app_data(context, check);
        SSL_CTX_set_client_cert_cb(context, on_certificate_wanted);
        return dial_secure(&check->dial, context, NULL, TIMEOUT_MS, failure, error);
}

/* Whether gatepostd answers on a new connection, with the PROXY header or without it. */
static int
answers(struct listener_check *check)
{
        int has_tls = check->doctor->config->certificate != NULL, result;
        SSL_CTX *context = has_tls ? SSL_CTX_new(TLS_client_method()) : NULL;
        char head[HEAD_MAX];
        enum dial_failure failure;
        struct error ignored;

        result = own_url_address(check->listen, &check->address) == 0 && (!has_tls || context != NULL) &&
                 open_listener(check, &failure, &ignored) == 0 &&
                 (!has_tls || shake_hands(check, context, &failure, &ignored) == 0) &&
                 get(check, check->doctor->config->sources[0].path, head, &failure, &ignored) == 0 &&
                 is_of_gatepostd(head);
        dial_close(&check->dial);
        SSL_CTX_free(context);
        return result;
}

/*
 * There is no answer of gatepostd. Report that there is one with the PROXY header, if none was sent, or
 * without it. Returns whether it is so.
 */
static int
is_proxied_otherwise(struct listener_check *check)
{
        struct doctor *doctor = check->doctor;
        struct listener_check other = {.doctor = doctor,
                                       .listen = check->listen,
                                       .dial = {.fd = -1},
                                       .sends_header = !check->sends_header};
        char *reload;

        if (!answers(&other))
                return 0;
        doctor_fail(doctor, EX_CONFIG,
                    "gatepostd answers %s a header of the PROXY protocol, but %s %s proxy_protocol = "
                    "required: gatepostd runs with another configuration",
                    other.sends_header ? "only with" : "without", doctor->file,
                    other.sends_header ? "does not have" : "has");
        reload = doctor_daemon_reload(doctor);
        doctor_remedy(doctor, "%s, or correct proxy_protocol and trusted_proxy in [receiver] of %s", reload,
                      doctor->file);
        free(reload);
        return 1;
}

static int
secure(struct listener_check *check)
{
        struct doctor *doctor = check->doctor;
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        enum dial_failure failure;
        struct error error;
        int result;

        doctor_begin(doctor, "tls", "%s", check->listen->text);
        if (context == NULL || SSL_CTX_set_default_verify_paths(context) != 1) {
                SSL_CTX_free(context);
                doctor_skip(doctor, "OpenSSL cannot verify certificates on this machine");
                return 0;
        }
        result = shake_hands(check, context, &failure, &error);
        SSL_CTX_free(context);
        if (result == 0) {
                report_certificate(check);
                return 1;
        }
        if (check->wants_certificate) { /* before TLS 1.3, the handshake fails */
                report_wanted(check);
                return 0;
        }
        if (is_proxied_otherwise(check) || is_untrusted(check, failure))
                return 0;
        doctor_fail(doctor, EX_CONFIG, "no TLS: %s; the configuration has a certificate", error.text);
        doctor_remedy(
            doctor,
            "restart gatepostd, if the certificate was configured after its start: %s; else see what "
            "listens there: %s",
            doctor_restart(doctor), doctor_socket_finder(check->listen));
        return 0;
}

static void
report_impostor(struct listener_check *check, const char *head)
{
        const char *server = strcasestr(head, "\r\nServer: ");
        int len = server == NULL ? 0 : (int)strcspn(server + 10, "\r\n");

        doctor_fail(check->doctor, EX_UNAVAILABLE, "another program than gatepostd answers: %.*s%s%.*s",
                    (int)strcspn(head, "\r\n"), head, server == NULL ? "" : ", ", len,
                    server == NULL ? "" : server + 10);
        doctor_socket_advise(check->doctor, check->listen, "receiver");
}

/* Nothing was answered to a request, for a reason that cannot be seen from here. */
static void
report_silence(struct listener_check *check, enum dial_failure failure, const struct error *error)
{
        struct doctor *doctor = check->doctor;

        doctor_fail(doctor, EX_UNAVAILABLE, "no answer to HTTP: %s%s", error->text,
                    failure == DIAL_CLOSED
                        ? ", as gatepostd does at a limit of its connections, or if it runs with "
                          "proxy_protocol = required and another trusted_proxy"
                        : "");
        doctor_remedy(doctor,
                      "see what listens there: %s; if it is gatepostd, what it logs: journalctl -u "
                      "@UNIT@; and whether it has loaded %s: systemctl reload @UNIT@",
                      doctor_socket_finder(check->listen), doctor->file);
}

static void
warn_of_unwanted(struct doctor *doctor)
{
        char *reload = doctor_daemon_reload(doctor);

        doctor_warn(
            doctor,
            "gatepostd answers without a certificate of the client, but %s has tls_client_ca_file: %s",
            doctor->file, reload);
        free(reload);
}

static void
identify(struct listener_check *check)
{
        struct doctor *doctor = check->doctor;
        char head[HEAD_MAX];
        enum dial_failure failure;
        struct error error;
        int result = get(check, doctor->config->sources[0].path, head, &failure, &error);

        doctor->receives |= result == 0 && is_of_gatepostd(head);
        if (doctor->config->certificate != NULL)
                doctor_begin(doctor, "listen", "%s", check->listen->text);
        if (result != 0 && check->wants_certificate && failure != DIAL_TIMED_OUT)
                report_wanted(check);
        else if (result == 0 && is_of_gatepostd(head) && doctor->config->tls_client_ca_file != NULL)
                warn_of_unwanted(doctor);
        else if (result == 0 && is_of_gatepostd(head))
                doctor_pass(doctor, "gatepostd answers");
        else if ((result == 0 || failure != DIAL_TIMED_OUT) && is_proxied_otherwise(check))
                return;
        else if (result == 0 || head[0] != '\0')
                report_impostor(check, head);
        else if (doctor->config->certificate == NULL && broker_dialer_finds_tls(&check->address.info)) {
                doctor_fail(doctor, EX_CONFIG, "this port speaks TLS; the configuration has no certificate");
                doctor_remedy(doctor,
                              "restart gatepostd, if the certificate was removed from the configuration: %s",
                              doctor_restart(doctor));
        } else if (!is_untrusted(check, failure)) {
                report_silence(check, failure, &error);
        }
}

void
doctor_check_listeners(struct doctor *doctor)
{
        const struct config *config = doctor->config;

        if (!(config->roles & CONFIG_RECEIVER))
                return;
        for (size_t i = 0; i < config->n_listen; i++) {
                struct listener_check check = {.doctor = doctor,
                                               .listen = &config->listen[i],
                                               .dial = {.fd = -1},
                                               .sends_header = config->requires_proxy};

                if (own_url_address(check.listen, &check.address) != 0) {
                        doctor_begin(doctor, "listen", "%s", check.listen->text);
                        doctor_skip(doctor, "port 0: only gatepostd knows which port it has got");
                        continue;
                }
                if (connect_to(&check) && (config->certificate == NULL || secure(&check)))
                        identify(&check);
                dial_close(&check.dial);
        }
}
