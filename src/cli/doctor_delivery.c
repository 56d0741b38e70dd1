#include "cli/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/dial.h"
#include "base/mem.h"
#include "base/uri.h"
#include "cli/doctor_daemon.h"
#include "cli/doctor_trail.h"
#include "cli/own_url.h"
#include "cli/receiver_url.h"
#include "cli/status.h"
#include "cli/terminal.h"
#include "config/certificate.h"
#include "model/delivery_check.h"
#include "model/judge.h"

/*
 * Test deliveries for each secret of each source, signed and sent as the service would. The router
 * recognises them by their kind and drops them, so that consumers never see them (model/judge.h).
 */

#define TIMEOUT_MS 15000
#define ANSWER_MAX 65536
#define REFUSAL_PAUSE_MS 1000
#define SLOW_MS 500 /* while Kafka or the way is slow, more deliveries are only more to wait for */

/*
 * Make a body with the kind where the source looks for it, and never twice the same: its first member is
 * random, and is not the one that leads to the kind. The caller frees it.
 */
static char *
make_body(const struct config_source *source)
{
        const struct pointer *kind = &source->rules.kind;
        struct json_writer *json = json_new(0);
        int is_taken = strcmp(kind->segments[0], JUDGE_TEST_KIND) == 0;
        char id[BYTES_UUID_SIZE];
        size_t len;

        json_open_object(json, NULL);
        json_member(json, is_taken ? JUDGE_TEST_KIND ".id" : JUDGE_TEST_KIND, bytes_random_uuid(id));
        for (size_t i = 0; i + 1 < kind->n_segments; i++)
                json_open_object(json, kind->segments[i]);
        json_member(json, kind->segments[kind->n_segments - 1], JUDGE_TEST_KIND);
        for (size_t i = 0; i + 1 < kind->n_segments; i++)
                json_close_object(json);
        json_close_object(json);
        return json_take(json, &len);
}

/* Choose the URL. Returns 0, or -1 when the port is 0. */
static int
choose_url(const struct doctor *doctor, const struct config_source *source, struct own_url *to)
{
        if (doctor->url == NULL)
                return own_url_make(&doctor->config->listen[0], doctor->config->tls_certificate_file,
                                    source->path, to);
        *to = (struct own_url){0};
        to->url = receiver_url_make(doctor->url, source->path);
        return 0;
}

static int
post(const struct own_url *to, const char *address, const struct sign_input *signing,
     const struct sign_values *values, struct http_client_answer *answer, struct error *error)
{
        char *headers[DELIVERY_N_HEADERS + 1];
        struct http_client_request request = {.method = "POST",
                                              .url = to->url,
                                              .socket_path = to->socket_path,
                                              .address = address,
                                              .ca_file = to->ca_file,
                                              .allows_any_name = to->ca_file != NULL,
                                              .keeps_certificate = to->ca_file == NULL,
                                              .headers = (const char *const *)headers,
                                              .n_headers = DELIVERY_N_HEADERS + 1,
                                              .body = signing->body,
                                              .len = signing->len,
                                              .timeout_ms = TIMEOUT_MS,
                                              .max_answer = ANSWER_MAX};
        int result;

        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                headers[h] = mem_printf("%s-%s: %s", signing->source->header_prefix,
                                        delivery_header_suffix((enum delivery_header)h), values->values[h]);
        headers[DELIVERY_N_HEADERS] = mem_strdup("User-Agent: " DELIVERY_PROBE_AGENT);
        result = http_client_call(&request, answer, error);
        for (size_t h = 0; h <= DELIVERY_N_HEADERS; h++)
                free(headers[h]);
        return result;
}

/* What became of a delivery. After the last four, no other is sent to the same address. */
/* From THROTTLED on, no more is sent there. */
enum outcome {
        ACCEPTED,
        REFUSED,
        LIMITED, /* one was accepted, and a proxy takes no more at once */
        THROTTLED,
        TIMED_OUT,
        UNREACHED,
        OUT_OF_REACH,
};

/* An address that could not be connected to, and why. */
struct unreached {
        char address[DIAL_TEXT_SIZE];
        struct error error;
};

/* Test deliveries under way. */
struct sending {
        struct doctor *doctor;
        struct doctor_trail *trail;
        const char *address;  /* of several of the URL's host, with the port; NULL: whichever libcurl takes */
        enum outcome outcome; /* of the last one to this address */
        size_t n_accepted;    /* signed by the present secret, there */
        int64_t took_ms;      /* until the slowest of those was answered */
        enum certificate_state certificate;
        struct error certificate_error;
        size_t n_untried;     /* secrets, for it */
        int64_t refused_ms;   /* when one was refused last, at any address, by clock_monotonic_ms() */
        int is_one_in_reach;  /* this machine has a way to one of the addresses */
        int has_one_answered; /* one of them has */
        struct unreached *unreached;
        size_t n_unreached;
};

/*
 * One of several addresses cannot be connected to. Whether that is trouble of this address is known when all
 * were tried; but it is none if this machine has no way to it: it has no IPv6, for example.
 */
static enum outcome
note_unreached(struct sending *sending, int os_error, const struct error *error)
{
        struct unreached *unreached;

        if (os_error == ENETUNREACH || os_error == EADDRNOTAVAIL) {
                doctor_skip(sending->doctor, "%s: this machine has no way to this address of several",
                            error->text);
                return OUT_OF_REACH;
        }
        sending->unreached =
            mem_resize(sending->unreached, sending->n_unreached + 1, sizeof(*sending->unreached));
        unreached = &sending->unreached[sending->n_unreached++];
        (void)snprintf(unreached->address, sizeof(unreached->address), "%s", sending->address);
        unreached->error = *error;
        return UNREACHED;
}

/* Return what became of a delivery. If it is accepted, the trail knows it; otherwise, this is reported. */
static enum outcome
judge(struct sending *sending, const struct sign_input *signing, const struct signature_key *key,
      const struct http_client_answer *answer, int64_t sent_ms)
{
        int64_t now_ms = clock_now_ms();

        sending->has_one_answered = 1;
        if (sending->n_accepted > 0 && doctor_answer_limits(answer))
                return LIMITED;
        if (sending->outcome == LIMITED && doctor_answer_limits(answer)) {
                doctor_skip(sending->doctor, "a proxy before the receiver does not take more at once");
                return THROTTLED;
        }
        if (!doctor_answer_check(sending->doctor, signing, answer))
                return answer->status == 429 ? THROTTLED : REFUSED;
        if (sending->n_accepted++ == 0)
                sending->certificate = doctor_answer_certificate(answer, &sending->certificate_error);
        if (now_ms - sent_ms > sending->took_ms)
                sending->took_ms = now_ms - sent_ms;
        doctor_trail_add(sending->trail, key, signing->delivery_id, sending->address, sent_ms, now_ms);
        return ACCEPTED;
}

static enum outcome
send_signed(struct sending *sending, const struct own_url *to, const struct sign_input *signing,
            const struct signature_key *key, const struct sign_values *values, int64_t sent_ms)
{
        struct http_client_answer answer = {0};
        struct error error;
        enum outcome outcome;

        if (post(to, sending->address, signing, values, &answer, &error) == 0) {
                outcome = judge(sending, signing, key, &answer, sent_ms);
        } else if (sending->address != NULL && !answer.is_connected) {
                outcome = note_unreached(sending, answer.os_error, &error);
        } else {
                doctor_answer_missing(sending->doctor, &answer, &error);
                outcome = answer.failure == HTTP_CLIENT_TIMED_OUT ? TIMED_OUT : REFUSED;
        }
        free(answer.body);
        free(answer.certificate);
        sending->is_one_in_reach |= outcome != OUT_OF_REACH;
        if (outcome == REFUSED || outcome == LIMITED || outcome == THROTTLED)
                sending->refused_ms = clock_monotonic_ms();
        return outcome;
}

/* Let max_refusals_per_address forget the last refusal, so that this command uses at most one a second. */
static void
pause_after_refusal(const struct sending *sending)
{
        int64_t left_ms = sending->refused_ms + REFUSAL_PAUSE_MS - clock_monotonic_ms();

        if (sending->refused_ms != 0 && left_ms > 0 && !terminal_is_interrupted())
                clock_sleep_ms(left_ms);
}

/* Send one delivery, with an id or a random one. */
static enum outcome
send_one(struct sending *sending, const struct own_url *to, const struct config_source *source,
         const struct signature_key *key, const char *id)
{
        struct sign_input signing = {.source = source, .body = make_body(source)};
        struct sign_values values;
        struct error error;
        int64_t sent_ms = clock_now_ms();
        enum outcome outcome = REFUSED;

        signing.len = strlen(signing.body);
        sign_choose_ids(&signing, id, NULL);
        if (sign_delivery(&signing, key, sent_ms / 1000, &values, &error) != 0) {
                doctor_fail(sending->doctor, EX_OSERR, "%s", error.text);
        } else {
                outcome = send_signed(sending, to, &signing, key, &values, sent_ms);
                sign_clear_values(&values);
        }
        free(signing.body);
        return outcome;
}

/*
 * Send deliveries signed by one secret: one, and more until one comes to each partition, since each may have
 * another router. They are one result.
 */
static enum outcome
send_by_secret(struct sending *sending, const struct own_url *to, const struct config_source *source,
               size_t secret)
{
        struct doctor *doctor = sending->doctor;
        const struct signature_key *key = source->keys[secret];
        char id[BYTES_UUID_SIZE], *shown = uri_hide_secrets(to->url);
        int has_id = doctor_trail_choose(sending->trail, key, id);
        int64_t until_ms;
        const char *more;
        enum outcome outcome;

        pause_after_refusal(sending);
        until_ms = clock_monotonic_ms() + TIMEOUT_MS;
        sending->n_accepted = 0;
        sending->took_ms = 0;
        doctor_begin(doctor, "delivery", "%s%s%s, secret %zu of [source %s]", shown,
                     sending->address == NULL ? "" : " at ", sending->address == NULL ? "" : sending->address,
                     secret + 1, source->name);
        free(shown);
        do {
                outcome = send_one(sending, to, source, key, has_id ? id : NULL);
        } while (outcome == ACCEPTED && (has_id = doctor_trail_choose(sending->trail, key, id)) &&
                 sending->took_ms < SLOW_MS && clock_monotonic_ms() < until_ms && !terminal_is_interrupted());
        if (outcome != ACCEPTED && outcome != LIMITED)
                return outcome;
        more = outcome == LIMITED ? "; a proxy before the receiver does not take more at once" : "";
        if (sending->certificate == CERTIFICATE_VALID)
                doctor_pass(doctor, "answered 200 in %" PRId64 " ms%s", sending->took_ms, more);
        else
                doctor_warn(doctor, "answered 200 in %" PRId64 " ms%s; %s", sending->took_ms, more,
                            sending->certificate_error.text);
        return outcome;
}

/* Report that --to leads to no source. Returns whether it is so. */
static int
report_strange_url(struct doctor *doctor)
{
        const struct config *config = doctor->config;
        char *shown;

        if (doctor->url == NULL || !receiver_url_has_path(doctor->url) ||
            receiver_url_source(config, doctor->url) != NULL)
                return 0;
        shown = uri_hide_secrets(doctor->url);
        doctor_begin(doctor, "delivery", "%s", shown);
        free(shown);
        doctor_fail(doctor, EX_USAGE, "no source of %s has a `path` with which this URL ends", doctor->file);
        doctor_remedy(
            doctor,
            "end --to with the path of a source, such as %s, or leave the path out: then each source "
            "is tested",
            config->sources[0].path);
        return 1;
}

/* Whether a source is tested: with a path in --to, it is the one that has it. */
static int
is_tested(const struct doctor *doctor, const struct config_source *source)
{
        return doctor->url == NULL || !receiver_url_has_path(doctor->url) ||
               receiver_url_source(doctor->config, doctor->url) == source;
}

/* Send some for each secret of a source, unless it is known that the address takes no more. */
static void
send_to_source(struct sending *sending, const struct config_source *source, const struct own_url *to)
{
        for (size_t k = 0; k < source->n_keys; k++) {
                if (sending->outcome >= THROTTLED)
                        sending->n_untried++;
                else
                        sending->outcome = send_by_secret(sending, to, source, k);
        }
}

static void
report_untried(const struct sending *sending)
{
        struct doctor *doctor = sending->doctor;
        const char *plural = sending->n_untried == 1 ? " is" : "s are";

        if (sending->n_untried == 0 || sending->outcome == UNREACHED || sending->outcome == OUT_OF_REACH)
                return;
        doctor_begin(doctor, "delivery", "%s", sending->address == NULL ? "" : sending->address);
        if (sending->outcome == THROTTLED)
                doctor_skip(doctor, "%zu other secret%s not tried, as too many requests were refused",
                            sending->n_untried, plural);
        else
                doctor_skip(doctor, "%zu other secret%s not tried, as a delivery got no answer within %d s",
                            sending->n_untried, plural, TIMEOUT_MS / 1000);
}

static void
send_to_address(struct sending *sending, const char *address)
{
        struct doctor *doctor = sending->doctor;
        const struct config *config = doctor->config;

        sending->address = address;
        sending->outcome = ACCEPTED;
        sending->n_untried = 0;
        for (size_t s = 0; s < config->n_sources; s++) {
                struct own_url to;

                if (!is_tested(doctor, &config->sources[s]))
                        continue;
                if (choose_url(doctor, &config->sources[s], &to) != 0) {
                        doctor_begin(doctor, "delivery", "%s", "");
                        doctor_skip(doctor, "only gatepostd knows its port; give --to URL");
                        return;
                }
                send_to_source(sending, &config->sources[s], &to);
                free(to.url);
        }
        report_untried(sending);
}

/* Report which of several addresses cannot be connected to, after all were tried. */
static void
report_unreached(const struct sending *sending)
{
        struct doctor *doctor = sending->doctor;
        char *shown = uri_hide_secrets(doctor->url);

        for (size_t i = 0; i < sending->n_unreached; i++) {
                doctor_begin(doctor, "delivery", "%s at %s", shown, sending->unreached[i].address);
                doctor_fail(doctor, EX_UNAVAILABLE, "%s", sending->unreached[i].error.text);
                doctor_remedy(doctor, "%s",
                              sending->has_one_answered
                                  ? "see why this address of several does not answer, or remove it from the "
                                    "name in DNS or /etc/hosts: the service may choose it"
                                  : "see whether the proxy or gatepostd runs there, and whether the host and "
                                    "the port of the URL and the firewalls are right");
        }
        if (!sending->is_one_in_reach) {
                doctor_begin(doctor, "delivery", "%s", shown);
                doctor_fail(doctor, EX_UNAVAILABLE, "this machine has no way to any address of this host");
                doctor_remedy(doctor, "see whether the addresses are right, and the routes of this machine: "
                                      "ip route");
        }
        free(shown);
}

/* Send to all addresses of the host in --to: the service may connect to any of them. */
static void
send_all(struct doctor *doctor, struct doctor_trail *trail)
{
        struct addrinfo *found = doctor->url == NULL ? NULL : receiver_url_addresses(doctor->url, TIMEOUT_MS);
        struct sending sending = {.doctor = doctor, .trail = trail};
        char text[DIAL_TEXT_SIZE];

        if (found == NULL) {
                send_to_address(&sending, NULL);
                return;
        }
        for (const struct addrinfo *each = found; each != NULL; each = each->ai_next)
                send_to_address(&sending, dial_format(each, text));
        report_unreached(&sending);
        freeaddrinfo(found);
        free(sending.unreached);
}

/* Return why no test delivery is sent, or NULL. */
static const char *
find_obstacle(const struct doctor *doctor)
{
        const struct config *config = doctor->config;

        if (!doctor->sends)
                return "--no-send";
        if (!(config->roles & CONFIG_RECEIVER) && doctor->url == NULL)
                return "no receiver is configured here; give --to URL, or run it where the receiver is";
        if (config->tls_client_ca_file != NULL && doctor->url == NULL)
                return "the receiver requires a certificate of the client, and this command has none";
        if (config->requires_proxy && doctor->url == NULL)
                return doctor->is_untrusted
                           ? "the receiver accepts only connections of a trusted_proxy, which this machine "
                             "is not; "
                             "give --to with the proxy's URL"
                           : "the receiver requires the PROXY protocol; give --to with the proxy's URL";
        if (doctor->status != NULL && config->roles & CONFIG_ROUTER &&
            json_tree_get(doctor->status, "testDeliveries") == NULL)
                return "gatepostd is older than this command, and would put it into quarantine";
        return NULL;
}

void
doctor_check_delivery(struct doctor *doctor)
{
        const char *obstacle = find_obstacle(doctor);
        struct doctor_trail *trail;

        if (obstacle != NULL) {
                doctor_begin(doctor, "delivery", "%s", "");
                doctor_skip(doctor, "%s", obstacle);
                return;
        }
        if (report_strange_url(doctor))
                return;
        trail = doctor_trail_begin(doctor);
        send_all(doctor, trail);
        doctor_trail_follow(doctor, trail);
        doctor_trail_free(trail);
}
