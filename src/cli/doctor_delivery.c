#include "cli/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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
#include "cli/terminal.h"
#include "cli/test_delivery.h"
#include "config/certificate.h"

/* Test deliveries for each secret of each source: how many are sent, and to which addresses. */

#define TIMEOUT_MS TEST_DELIVERY_TIMEOUT_MS
#define LIMIT_TEXT "a proxy before the receiver does not take more at once"
#define REFUSAL_PAUSE_MS 1000
#define SLOW_MS 500 /* while Kafka or the way is slow, more deliveries are only more to wait for */

/*
 * Several receivers may answer at one URL, in turn: how many more deliveries with each webhook_id it gets,
 * and how often one that was refused is tried again.
 */
#define URL_MORE 3
#define URL_RETRIES 3

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

/* What became of a delivery. From THROTTLED on, no other is sent to the same address. */
enum outcome {
        ACCEPTED,
        REFUSED,
        LIMITED, /* one was accepted, and a proxy takes no more at once */
        THROTTLED,
        TIMED_OUT,
        UNREACHED,
        OUT_OF_REACH, /* this machine has no way to the address, as without IPv6: not the address's trouble */
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
        const struct config_source *source;
        const struct signature_key *key;
        const struct own_url *to;
        const char *address;  /* of several of the URL's host, with the port; NULL: whichever libcurl takes */
        enum outcome outcome; /* of the last one to this address */
        size_t n_accepted;    /* signed by the present secret, there */
        int64_t took_ms;      /* until the slowest of those was answered */
        int lacks_ids;        /* not every webhook_id was tried, */
        int is_cut;           /* or not as often as wanted */
        enum certificate_state certificate;
        struct error certificate_error;
        size_t n_untried;     /* secrets, for it */
        int64_t refused_ms;   /* when one was refused last, at any address, by clock_monotonic_ms() */
        int is_one_in_reach;  /* this machine has a way to one of the addresses */
        int has_one_answered; /* one of them has */
        struct unreached *unreached;
        size_t n_unreached;
};

/* An address of several cannot be connected to: whether that is its trouble is known when all were tried. */
static void
note_unreached(struct sending *sending, const struct error *error)
{
        struct unreached *unreached;

        sending->unreached =
            mem_resize(sending->unreached, sending->n_unreached + 1, sizeof(*sending->unreached));
        unreached = &sending->unreached[sending->n_unreached++];
        (void)snprintf(unreached->address, sizeof(unreached->address), "%s", sending->address);
        unreached->error = *error;
}

/* Return what became of a delivery that was answered. If it is accepted, the trail knows it. */
static enum outcome
judge_answer(struct sending *sending, const struct test_delivery *delivery)
{
        int64_t took_ms = delivery->answered_ms - delivery->sent_ms;

        sending->has_one_answered = 1;
        if (doctor_answer_limits(&delivery->answer) &&
            (sending->n_accepted > 0 || sending->outcome == LIMITED))
                return sending->n_accepted > 0 ? LIMITED : THROTTLED;
        if (!doctor_answer_accepts(delivery))
                return delivery->answer.status == 429 ? THROTTLED : REFUSED;
        sending->n_accepted++;
        if (sending->certificate == CERTIFICATE_VALID)
                sending->certificate =
                    doctor_answer_certificate(&delivery->answer, &sending->certificate_error);
        sending->took_ms = took_ms > sending->took_ms ? took_ms : sending->took_ms;
        doctor_trail_add(sending->trail, sending->key, delivery->signing.delivery_id, sending->address,
                         delivery->sent_ms, delivery->answered_ms);
        return ACCEPTED;
}

/* Let max_refusals_per_address forget the last refusal, so that this command uses at most one a second. */
static void
pause_after_refusal(const struct sending *sending)
{
        int64_t left_ms = sending->refused_ms + REFUSAL_PAUSE_MS - clock_monotonic_ms();

        if (sending->refused_ms != 0 && left_ms > 0 && !terminal_is_interrupted())
                clock_sleep_ms(left_ms);
}

/* Send one delivery, with these ids or random ones. The caller clears it. */
static void
send_one(struct sending *sending, const char *id, const char *webhook_id, struct test_delivery *delivery)
{
        enum outcome outcome = REFUSED;

        if (test_delivery_send_as(delivery, sending->source, sending->key, sending->to, sending->address, id,
                                  webhook_id) != 0)
                ;
        else if (delivery->has_answer)
                outcome = judge_answer(sending, delivery);
        else if (sending->address != NULL && !delivery->answer.is_connected)
                outcome =
                    delivery->answer.os_error == ENETUNREACH || delivery->answer.os_error == EADDRNOTAVAIL
                        ? OUT_OF_REACH
                        : UNREACHED;
        else if (delivery->answer.failure == HTTP_CLIENT_TIMED_OUT)
                outcome = TIMED_OUT;
        sending->is_one_in_reach |= outcome != OUT_OF_REACH;
        if (outcome == REFUSED || outcome == LIMITED || outcome == THROTTLED)
                sending->refused_ms = clock_monotonic_ms();
        sending->outcome = outcome;
}

/* Whether another delivery like one that was refused is accepted, by another receiver behind the URL. */
static int
does_another_accept(struct sending *sending, const char *webhook_id)
{
        struct test_delivery again;

        for (int i = 0; i < URL_RETRIES && sending->outcome == REFUSED && !terminal_is_interrupted(); i++) {
                pause_after_refusal(sending);
                send_one(sending, NULL, webhook_id, &again);
                test_delivery_clear(&again);
        }
        return sending->outcome == ACCEPTED;
}

/* Return why not all deliveries were sent though those that were are accepted, or NULL. */
static const char *
find_limit(const struct sending *sending, const struct test_delivery *delivery)
{
        if (sending->outcome == LIMITED && delivery->answer.status == 503)
                return "then a proxy answered 503: it limits the rate, or does not reach one of several "
                       "receivers";
        if (sending->outcome == LIMITED)
                return sending->lacks_ids ? "a proxy before the receiver does not take all webhook_id at once"
                                          : LIMIT_TEXT;
        return sending->is_cut ? "answers are slow, so that not all webhook_id or receivers were tried"
                               : NULL;
}

/* Report that the deliveries were accepted, as far as they were sent. */
static void
report_accepted(const struct sending *sending, const struct test_delivery *delivery)
{
        const char *limit = find_limit(sending, delivery);
        int is_valid = sending->certificate == CERTIFICATE_VALID;
        char *text = mem_printf("answered 200 in %" PRId64 " ms%s%s%s%s", sending->took_ms,
                                limit == NULL ? "" : "; ", limit == NULL ? "" : limit, is_valid ? "" : "; ",
                                is_valid ? "" : sending->certificate_error.text);

        if (is_valid && (limit == NULL || (delivery->answer.status == 429 && !sending->lacks_ids)))
                doctor_pass(sending->doctor, "%s", text);
        else
                doctor_warn(sending->doctor, "%s", text);
        free(text);
}

/* Report what became of the last delivery, and with it of all that are signed by this secret. */
static void
report(struct sending *sending, const struct test_delivery *delivery, int was_limited, int is_mixed)
{
        struct doctor *doctor = sending->doctor;

        if (sending->outcome == ACCEPTED || sending->outcome == LIMITED)
                report_accepted(sending, delivery);
        else if (sending->outcome == OUT_OF_REACH)
                doctor_skip(doctor, "%s: this machine has no way to this address of several",
                            delivery->error.text);
        else if (sending->outcome == UNREACHED)
                note_unreached(sending, &delivery->error);
        else if (sending->outcome == THROTTLED && was_limited)
                doctor_skip(doctor, LIMIT_TEXT);
        else if (delivery->has_answer)
                doctor_answer_report(doctor, delivery, is_mixed);
        else
                doctor_answer_missing(doctor, &delivery->answer, &delivery->error);
}

/*
 * Send deliveries signed by one secret, until each webhook_id was used, and one has come to each partition,
 * since each may have another router. To a URL, each ID is used again in a row, since receivers that answer
 * in turn would meet the same ones if they alternated. All are one result, which is that of the last one.
 */
static void
send_each(struct sending *sending)
{
        const struct config_source *source = sending->source;
        size_t n = 0, k, n_ids = source->n_webhook_ids == 0 ? 1 : source->n_webhook_ids;
        size_t n_wanted = n_ids + (sending->doctor->url == NULL ? 0 : n_ids * URL_MORE);
        int was_limited = sending->outcome == LIMITED, is_mixed = 0, has_id;
        int64_t until_ms = clock_monotonic_ms() + TIMEOUT_MS;
        struct test_delivery delivery = {0};
        const char *webhook_id;
        char id[BYTES_UUID_SIZE];

        has_id = doctor_trail_choose(sending->trail, sending->key, id);
        do {
                test_delivery_clear(&delivery);
                k = n < n_ids ? n : (n - n_ids) / URL_MORE % n_ids;
                webhook_id = source->n_webhook_ids == 0 ? NULL : source->webhook_ids[k];
                send_one(sending, has_id ? id : NULL, webhook_id, &delivery);
                if (sending->outcome != ACCEPTED)
                        break;
                n++;
                has_id = doctor_trail_choose(sending->trail, sending->key, id);
        } while ((n < n_wanted || (has_id && sending->took_ms < SLOW_MS)) &&
                 clock_monotonic_ms() < until_ms && !terminal_is_interrupted());
        if (sending->outcome == REFUSED && sending->doctor->url != NULL &&
            doctor_answer_may_differ(&delivery)) {
                is_mixed = n >= n_ids || does_another_accept(sending, webhook_id);
                sending->outcome = REFUSED;
        }
        sending->lacks_ids = n < n_ids;
        sending->is_cut = n < n_wanted;
        report(sending, &delivery, was_limited, is_mixed);
        test_delivery_clear(&delivery);
}

static void
send_by_secret(struct sending *sending, size_t secret)
{
        char *shown = uri_hide_secrets(sending->to->url);

        pause_after_refusal(sending);
        sending->key = sending->source->keys[secret];
        sending->n_accepted = 0;
        sending->took_ms = 0;
        sending->certificate = CERTIFICATE_VALID;
        doctor_begin(sending->doctor, "delivery", "%s%s%s, secret %zu of [source %s]", shown,
                     sending->address == NULL ? "" : " at ", sending->address == NULL ? "" : sending->address,
                     secret + 1, sending->source->name);
        free(shown);
        send_each(sending);
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
send_to_source(struct sending *sending)
{
        for (size_t k = 0; k < sending->source->n_keys; k++) {
                if (sending->outcome >= THROTTLED)
                        sending->n_untried++;
                else
                        send_by_secret(sending, k);
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
        doctor_skip(doctor, "%zu other secret%s not tried, as %s", sending->n_untried, plural,
                    sending->outcome == THROTTLED ? "too many requests were refused"
                                                  : "a delivery got no answer within 15 s");
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
                sending->source = &config->sources[s];
                sending->to = &to;
                send_to_source(sending);
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
