#include "cli/doctor.h"

#include <errno.h>
#include <inttypes.h>
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
#include "model/delivery_check.h"
#include "model/judge.h"

/*
 * Test deliveries, one for each secret of each source, signed and sent as the service would. The router
 * recognises them by their kind and drops them, so that consumers never see them (model/judge.h).
 */

#define TIMEOUT_MS 15000
#define ANSWER_MAX 65536
#define REFUSAL_PAUSE_MS 1000

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

enum outcome { ACCEPTED, FAILED, TIMED_OUT, OUT_OF_REACH };

/* Test deliveries under way. */
struct sending {
        struct doctor *doctor;
        struct doctor_trail *trail;
        const char *address;  /* of several of the URL's host, with the port; NULL: whichever libcurl takes */
        enum outcome outcome; /* of the last one to this address */
        size_t n_untried;
};

/* The host has several addresses, and this machine has no way to this one: it has no IPv6, for example. */
static int
is_out_of_reach(const struct sending *sending, int os_error)
{
        return sending->address != NULL &&
               (os_error == ENETUNREACH || os_error == EHOSTUNREACH || os_error == EADDRNOTAVAIL);
}

/* Send a delivery. If it is accepted, the trail knows it. */
static enum outcome
send_signed(struct sending *sending, const struct own_url *to, const struct sign_input *signing,
            const struct sign_values *values, int64_t sent_ms)
{
        struct doctor *doctor = sending->doctor;
        struct http_client_answer answer = {0};
        struct error error;
        enum outcome outcome = FAILED;
        int result = post(to, sending->address, signing, values, &answer, &error);
        int64_t now_ms = clock_now_ms();

        if (result != 0 && is_out_of_reach(sending, answer.os_error)) {
                doctor_skip(doctor, "%s: this machine has no way to this address of several", error.text);
                outcome = OUT_OF_REACH;
        } else if (result != 0) {
                doctor_answer_missing(doctor, sending->address, answer.failure, &error);
                outcome = answer.failure == HTTP_CLIENT_TIMED_OUT ? TIMED_OUT : FAILED;
        } else if (doctor_answer_check(doctor, signing, &answer)) {
                doctor_pass(doctor, "answered 200 in %" PRId64 " ms", now_ms - sent_ms);
                doctor_trail_add(sending->trail, signing->delivery_id, sent_ms, now_ms);
                outcome = ACCEPTED;
        }
        free(answer.body);
        return outcome;
}

/* Send one delivery, signed by one secret. */
static enum outcome
send_one(struct sending *sending, const struct own_url *to, const struct config_source *source, size_t secret)
{
        struct doctor *doctor = sending->doctor;
        struct sign_input signing = {.source = source, .body = make_body(source)};
        struct sign_values values;
        struct error error;
        int64_t sent_ms = clock_now_ms();
        char *shown = uri_hide_userinfo(to->url);
        enum outcome outcome = FAILED;

        signing.len = strlen(signing.body);
        sign_choose_ids(&signing, NULL, NULL);
        doctor_begin(doctor, "delivery", "%s%s%s, secret %zu of [source %s]", shown,
                     sending->address == NULL ? "" : " at ", sending->address == NULL ? "" : sending->address,
                     secret + 1, source->name);
        free(shown);
        if (sign_delivery(&signing, source->keys[secret], sent_ms / 1000, &values, &error) != 0) {
                doctor_fail(doctor, EX_OSERR, "%s", error.text);
        } else {
                outcome = send_signed(sending, to, &signing, &values, sent_ms);
                sign_clear_values(&values);
        }
        free(signing.body);
        return outcome;
}

/* Let max_refusals_per_address forget the refusal, so that this command uses at most one a second. */
static void
pause_after_refusal(void)
{
        if (!terminal_is_interrupted())
                clock_sleep_ms(REFUSAL_PAUSE_MS);
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
        shown = uri_hide_userinfo(doctor->url);
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

/* Send one for each secret of a source, unless the address is known not to answer. */
static void
send_to_source(struct sending *sending, const struct config_source *source, const struct own_url *to)
{
        for (size_t k = 0; k < source->n_keys && sending->outcome != OUT_OF_REACH; k++) {
                if (sending->outcome == FAILED)
                        pause_after_refusal();
                if (sending->outcome == TIMED_OUT)
                        sending->n_untried++;
                else
                        sending->outcome = send_one(sending, to, source, k);
        }
}

static void
send_to_address(struct doctor *doctor, struct doctor_trail *trail, const char *address)
{
        struct sending sending = {.doctor = doctor, .trail = trail, .address = address};
        const struct config *config = doctor->config;

        for (size_t s = 0; s < config->n_sources; s++) {
                struct own_url to;

                if (!is_tested(doctor, &config->sources[s]))
                        continue;
                if (choose_url(doctor, &config->sources[s], &to) != 0) {
                        doctor_begin(doctor, "delivery", "%s", "");
                        doctor_skip(doctor, "only gatepostd knows its port; give --to URL");
                        return;
                }
                send_to_source(&sending, &config->sources[s], &to);
                free(to.url);
        }
        if (sending.n_untried == 0)
                return;
        doctor_begin(doctor, "delivery", "%s", "");
        doctor_skip(doctor, "%zu other secret%s not tried, as a delivery got no answer within %d s",
                    sending.n_untried, sending.n_untried == 1 ? " is" : "s are", TIMEOUT_MS / 1000);
}

/* Send to all addresses of the host in --to: the service may connect to any of them. */
static void
send_all(struct doctor *doctor, struct doctor_trail *trail)
{
        struct addrinfo *found = doctor->url == NULL ? NULL : receiver_url_addresses(doctor->url, TIMEOUT_MS);
        char text[DIAL_TEXT_SIZE];

        if (found == NULL)
                send_to_address(doctor, trail, NULL);
        for (const struct addrinfo *each = found; each != NULL; each = each->ai_next)
                send_to_address(doctor, trail, dial_format(each, text));
        if (found != NULL)
                freeaddrinfo(found);
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
