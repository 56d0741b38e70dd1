#include "cli/doctor_daemon.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/receiver_url.h"
#include "cli/service_answer.h"
#include "http/answer.h"
#include "model/delivery.h"

/* What it means if the receiver does not accept a test delivery, and what to do about it. */

#define RESOLVE_TIMEOUT_MS 5000

/* How receivers are given the same configuration without a loss. */
#define ADD_RATHER \
        "(add secrets and ids, rather than replace them; a router with verify = on quarantines what it " \
        "cannot verify by its own secrets)"

/* The file may be wrong, and what gatepostd has loaded right. */
#define UNLESS_RIGHT " (if it accepts deliveries of the service, correct the file instead)"

/* What a code of gatepostd means here; the daemon may have another configuration than the file. */
struct meaning {
        const char *code;
        int exit_status;
        const char *means;
        const char *remedy;
        /* Of the source; what gatepostd may have otherwise than this file, until a reload. NULL: nothing. */
        const char *option;
        const char *proxy; /* what a proxy before the receiver may do instead; NULL: nothing */
};

static const struct meaning meanings[] = {
    {"VALIDATION_ERROR", EX_CONFIG,
     "the receiver does not find the four headers with the source's header_prefix",
     "gatepostd runs with another header_prefix for this path than the file has" UNLESS_RIGHT,
     "header_prefix", "drops headers"},
    {"INVALID_SIGNATURE", EX_CONFIG, "the receiver refuses the signature by this secret of the configuration",
     "gatepostd runs with other secrets than the file names (if it accepts deliveries of the service, first "
     "add their secret as another secret_file; if it is lost, see gatepostd(8), Changing a secret)",
     "secret_file", "changes bodies"},
    {"STALE_TIMESTAMP", EX_CONFIG, "by the receiver's clock, the delivery was not signed now",
     "synchronise the clocks of this machine and the receiver's (timedatectl)", NULL, NULL},
    {"FORBIDDEN", EX_CONFIG, "the receiver does not take this webhook_id of the configuration",
     "gatepostd runs with other webhook_id than the file" UNLESS_RIGHT, "webhook_id", NULL},
    {"NOT_FOUND", EX_CONFIG, "no source of the receiver has the path that it gets",
     "gatepostd runs with other paths than the file" UNLESS_RIGHT ", or a proxy changes them", "path", NULL},
    {"TOO_MANY_REQUESTS", EX_UNAVAILABLE, "the receiver has refused too many requests from this address",
     "wait some seconds; if it stays, requests of others from this address are refused, too: see the "
     "receiver's log; if it is the address of a proxy, set trusted_proxy in [receiver] to it, and let it "
     "name its clients by X-Forwarded-For; or raise max_refusals_per_address",
     NULL, NULL},
    {"UNAVAILABLE", EX_UNAVAILABLE, "the receiver cannot append to Kafka now",
     "see @GATEPOST@ status, and journalctl -u @UNIT@", NULL, NULL},
};

/* Read the code of gatepostd in an answer, or NULL: then it is by a proxy or another server. */
static const char *
read_code(const struct http_client_answer *answer, struct service_error *refusal)
{
        service_error_read(answer->body, answer->len, refusal);
        return refusal->code != NULL && answer_has_code(answer->status, refusal->code) ? refusal->code : NULL;
}

/* Return what a code of gatepostd means, or NULL. */
static const struct meaning *
find_meaning(const char *code)
{
        for (size_t m = 0; code != NULL && m < ARRAY_LEN(meanings); m++) {
                if (strcmp(meanings[m].code, code) == 0)
                        return &meanings[m];
        }
        return NULL;
}

/* Whether the receiver misses a header that was sent, which it names: it has the same header_prefix. */
static int
misses_sent_header(const struct config_source *source, const struct service_error *refusal)
{
        size_t len = strlen(source->header_prefix);
        const char *field = refusal->n_violations == 0 ? NULL : refusal->violations[0].field;

        if (field == NULL || strncmp(field, source->header_prefix, len) != 0 || field[len] != '-')
                return 0;
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                if (strcmp(field + len + 1, delivery_header_suffix((enum delivery_header)h)) == 0)
                        return 1;
        }
        return 0;
}

/* Whether a run without --to sends to a daemon that has loaded the files as they are now. */
static int
can_compare(const struct doctor *doctor)
{
        const struct config *config = doctor->config;

        return doctor->status != NULL && !doctor->is_daemon_outdated && config->roles & CONFIG_RECEIVER &&
               !config->requires_proxy && config->tls_client_ca_file == NULL;
}

/* The receiver of --to has another file than this one, or what it gets was changed on the way. */
static void
advise_on_difference(struct doctor *doctor, const struct config_source *source, const struct meaning *meaning)
{
        const char *proxy = meaning->proxy;
        char *first = NULL, *last = NULL;

        if (proxy != NULL && can_compare(doctor))
                first =
                    mem_printf("compare with a run without --to: if its deliveries are accepted, and the URL "
                               "leads to this receiver only, a proxy before it %s; if not, ",
                               proxy);
        else if (proxy != NULL)
                last =
                    mem_printf("; or a proxy before the receiver %s: compare with a run without --to on the "
                               "receiver's machine",
                               proxy);
        doctor_remedy(doctor,
                      "%ssee which source gets it, by the receiver's log, since proxies may change the path; "
                      "if it is [source %s], %s and the receiver, or one of several behind the URL, do not "
                      "have the same %s: the one that accepts deliveries of the service is right, so correct "
                      "the other " ADD_RATHER ", and reload it%s",
                      first == NULL ? "" : first, source->name, doctor->file, meaning->option,
                      last == NULL ? "" : last);
        free(first);
        free(last);
}

/* Behind the URL are several receivers, of which some accept what another refuses. */
static void
advise_on_mixed(struct doctor *doctor, const struct config_source *source, const struct meaning *meaning)
{
        if (meaning->option == NULL)
                doctor_remedy(doctor,
                              "several receivers answer at this URL, and %s; --to with the address of each "
                              "tells which",
                              meaning->exit_status == EX_CONFIG
                                  ? "the clock of one is wrong: synchronise it (timedatectl)"
                                  : "one cannot append: run gatepost doctor on its machine");
        else
                doctor_remedy(
                    doctor,
                    "several receivers answer at this URL, and not all have the %s of [source %s] that %s "
                    "has: --to with the address of each tells which; the ones that accept deliveries of the "
                    "service are right, so correct the others " ADD_RATHER ", and reload them",
                    meaning->option, source->name, doctor->file);
}

/* The receiver of --to may have another file than this one, so that a reload does not help. */
static void
advise_on_refusal(struct doctor *doctor, const struct config_source *source, const struct meaning *meaning,
                  const struct service_error *refusal)
{
        const char *other = doctor_sources_other(doctor, source);

        if (other != NULL && doctor->url == NULL && meaning->option != NULL)
                doctor_remedy(
                    doctor,
                    "gatepostd has the path %s for [source %s]: correct the file; only if it is right, "
                    "see `daemon configuration` above, and then: %s",
                    source->path, other, doctor_age_reload(doctor));
        else if (strcmp(meaning->code, "UNAVAILABLE") == 0 && doctor->url != NULL)
                doctor_remedy(doctor, "run gatepost doctor without --to on the receiver's machine");
        else if (meaning->option == NULL)
                doctor_remedy(doctor, "%s", meaning->remedy);
        else if (doctor->url == NULL)
                doctor_remedy(doctor, "%s: %s", meaning->remedy, doctor_age_reload(doctor));
        else if (strcmp(meaning->option, "path") == 0)
                doctor_remedy(
                    doctor,
                    "see which path the receiver gets, by its log: there may be "
                    "a proxy that must remove what is before %s, or must not; if it gets %s, %s and the "
                    "receiver do not have the same sources: the one that accepts deliveries of the service "
                    "is right, so correct the other, and reload it",
                    source->path, source->path, doctor->file);
        else if (misses_sent_header(source, refusal))
                doctor_remedy(
                    doctor,
                    "let the proxy before the receiver pass on all headers of a delivery as they are: "
                    "%s-... were sent, and the receiver looks for these, too",
                    source->header_prefix);
        else
                advise_on_difference(doctor, source, meaning);
}

/* gatepostd answers with an envelope that has a code; proxies do not, or have others. */
static void
report_proxy(struct doctor *doctor, const struct http_client_answer *answer)
{
        doctor_fail(doctor, EX_UNAVAILABLE,
                    "answered %d without a code that gatepostd has for it: by a proxy before the "
                    "receiver, which may replace the receiver's answer, or by another server",
                    answer->status);
        doctor_remedy(
            doctor,
            "see what answers at this URL, and why, by its configuration and log, and by the "
            "receiver's%s",
            answer->status == 502 && doctor->config->certificate != NULL
                ? ": it may not reach the receiver, or speak HTTP to it, which has TLS; then remove "
                  "tls_certificate_file and tls_key_file, or let the proxy use TLS"
            : answer->status == 502 || answer->status == 504 ? ": it may not reach the receiver"
            : answer->status == 503 ? ": it may not reach one of several receivers, or limit the rate"
            : answer->status == 400 && (doctor->url == NULL || strncmp(doctor->url, "https:", 6) != 0)
                ? ": does it expect https?"
                : "");
}

/* Whether the admin endpoint has answered: it names its paths, or does not take the name in Host. */
static int
is_of_admin(const struct service_error *refusal, const char *code)
{
        return (refusal->message != NULL && strstr(refusal->message, "/readyz") != NULL) ||
               (code != NULL && strcmp(code, "MISDIRECTED_REQUEST") == 0);
}

/* Report a refusal for which gatepostd has a reason that is known here. */
static void
report_meaning(struct doctor *doctor, const struct sign_input *signing, const struct meaning *meaning,
               int status, const struct service_error *refusal, int is_mixed)
{
        const struct config_source *source = signing->source;
        const char *detail = refusal->n_violations == 0 ? NULL : refusal->violations[0].field;
        const char *means = meaning->means, *joint = ", such as ";
        int is_forbidden = strcmp(meaning->code, "FORBIDDEN") == 0;

        if (is_forbidden && source->n_webhook_ids == 0 && !(doctor->config->roles & CONFIG_RECEIVER)) {
                doctor_skip(
                    doctor,
                    "not verified: the receiver takes only certain webhook_id, and this file, in which "
                    "a router needs none, names none");
                return;
        }
        if (is_forbidden && source->n_webhook_ids == 0) {
                means = "the receiver takes only certain webhook_id, and the configuration names none";
        } else if (is_forbidden) {
                joint = ", ";
                detail = signing->webhook_id;
        }
        doctor_fail(doctor, meaning->exit_status, "answered %d (%s): %s%s%.128s%s%s", status, meaning->code,
                    means, detail == NULL ? "" : joint, detail == NULL ? "" : detail,
                    is_mixed ? "; but another delivery like it was accepted" : "",
                    doctor->is_daemon_outdated && meaning->exit_status == EX_CONFIG
                        ? "; gatepostd has not loaded the files as they are now"
                        : "");
        if (is_mixed)
                advise_on_mixed(doctor, source, meaning);
        else
                advise_on_refusal(doctor, source, meaning, refusal);
}

static void
report_refusal(struct doctor *doctor, const struct test_delivery *delivery, int is_mixed)
{
        struct service_error refusal;
        const char *code = read_code(&delivery->answer, &refusal);
        const struct meaning *meaning = find_meaning(code);

        if (is_of_admin(&refusal, code)) {
                doctor_fail(doctor, EX_CONFIG, "answered %d by the admin endpoint of gatepostd",
                            delivery->answer.status);
                doctor_remedy(doctor,
                              "let the URL, or the proxy before gatepostd, lead to the port of `listen` in "
                              "[receiver], not to that of [admin]");
        } else if (meaning != NULL) {
                report_meaning(doctor, &delivery->signing, meaning, delivery->answer.status, &refusal,
                               is_mixed);
        } else if (code == NULL) {
                report_proxy(doctor, &delivery->answer);
        } else {
                doctor_fail(doctor, EX_UNAVAILABLE, "answered %d (%s)", delivery->answer.status, code);
                doctor_remedy(doctor, "see what answers at this URL, and the log of gatepostd");
        }
        service_error_clear(&refusal);
}

/* Whether the receiver has answered, with the delivery-id. A web server may answer 200 to anything. */
static int
is_of_receiver(const struct http_client_answer *answer, const char *delivery_id)
{
        struct error ignored;
        struct json_value *body = json_tree_parse(answer->body, answer->len, &ignored);
        const char *id = json_tree_text(body, "deliveryId");
        int result = id != NULL && strcmp(id, delivery_id) == 0;

        json_tree_free(body);
        return result;
}

static void
report_other_server(struct doctor *doctor)
{
        doctor_fail(doctor, EX_CONFIG,
                    "answered 200, but without the delivery-id that was sent: not by gatepostd, or a proxy "
                    "before it replaces the header");
        doctor_remedy(
            doctor,
            "see what answers at this URL: the path, and the proxies before the receiver, which must "
            "pass on the headers of a delivery as they are; if they change answers only, use --no-send");
}

int
doctor_answer_limits(const struct http_client_answer *answer)
{
        struct service_error refusal;
        int result = 0;

        if (answer->status == 429 || answer->status == 503) {
                result = read_code(answer, &refusal) == NULL;
                service_error_clear(&refusal);
        }
        return result;
}

enum certificate_state
doctor_answer_certificate(const struct http_client_answer *answer, struct error *error)
{
        BIO *text = answer->certificate == NULL ? NULL : BIO_new_mem_buf(answer->certificate, -1);
        X509 *own = text == NULL ? NULL : PEM_read_bio_X509(text, NULL, NULL, NULL);
        enum certificate_state state =
            own == NULL ? CERTIFICATE_VALID
                        : certificate_single_state(own, clock_now_ms() / 1000, "the certificate", error);

        X509_free(own);
        (void)BIO_free(text);
        return state;
}

int
doctor_answer_accepts(const struct test_delivery *delivery)
{
        return delivery->answer.status == 200 &&
               is_of_receiver(&delivery->answer, delivery->signing.delivery_id);
}

int
doctor_answer_may_differ(const struct test_delivery *delivery)
{
        struct service_error refusal;
        const struct meaning *meaning = find_meaning(read_code(&delivery->answer, &refusal));

        service_error_clear(&refusal);
        return meaning != NULL && strcmp(meaning->code, "TOO_MANY_REQUESTS") != 0;
}

void
doctor_answer_report(struct doctor *doctor, const struct test_delivery *delivery, int is_mixed)
{
        if (delivery->answer.status != 200)
                report_refusal(doctor, delivery, is_mixed);
        else
                report_other_server(doctor);
}

/* After a failure: the receiver requires the PROXY protocol, which this command does not speak. */
static void
advise_on_proxy(struct doctor *doctor)
{
        if (receiver_url_is_listener(doctor->config, doctor->url, RESOLVE_TIMEOUT_MS))
                doctor_remedy(doctor, "give --to with the proxy's URL, not the receiver's: it accepts only "
                                      "connections of a trusted_proxy, with the PROXY protocol");
        else
                doctor_remedy(
                    doctor,
                    "see whether the proxy sends a header of the PROXY protocol, version 2, and from a "
                    "trusted_proxy: the receiver counts others in gatepost_connections_closed_total, with "
                    "reason=\"proxy_header\" and \"no_proxy\"; and whether the proxy reaches it");
}

/* Whether deliveries go straight to gatepostd, rather than to a proxy before it. */
static int
leads_to_gatepostd(const struct doctor *doctor)
{
        return doctor->url == NULL ||
               receiver_url_is_listener(doctor->config, doctor->url, RESOLVE_TIMEOUT_MS);
}

void
doctor_answer_missing(struct doctor *doctor, const struct http_client_answer *answer,
                      const struct error *error)
{
        int is_untrusted = answer->failure == HTTP_CLIENT_UNTRUSTED;
        const char *remedy = is_untrusted ? receiver_url_certificate_remedy(answer->verify_error) : NULL;

        if (doctor->is_certificate_outdated && is_untrusted && leads_to_gatepostd(doctor)) {
                doctor_fail(doctor, EX_CONFIG, "gatepostd serves other certificates than %s has: %s",
                            doctor->config->tls_certificate_file, error->text);
                doctor_remedy(doctor, "%s", doctor_age_reload(doctor));
                return;
        }
        doctor_fail(doctor, EX_UNAVAILABLE, "%s", error->text);
        if (doctor->config->requires_proxy && doctor->config->roles & CONFIG_RECEIVER &&
            answer->is_connected && !is_untrusted)
                advise_on_proxy(doctor);
        else
                doctor_remedy(doctor, "%s",
                              remedy != NULL
                                  ? remedy
                                  : "see whether the URL, its certificate and proxies before it are right");
}
