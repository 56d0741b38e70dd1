#include "cli/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/uri.h"
#include "cli/receiver_url.h"
#include "cli/test_delivery.h"
#include "http/answer.h"
#include "kafka/range.h"

/* The steps that follow a test delivery: to the receiver, into `deliveries`, and past the router. */

#define ROUTER_TIMEOUT_MS 30000
#define QUERY_TIMEOUT_MS 10000
#define PAUSE_MS 200
#define TOLERANCE_PART 10 /* a skew above this part of the tolerance is a failure */

/* What an answer of gatepostd means for an installation whose earlier steps have passed. */
static const struct meaning {
        const char *code;
        int status;
        const char *text;
        const char *remedy;
} meanings[] = {
    {"VALIDATION_ERROR", EX_CONFIG, "it does not find the headers with this header_prefix",
     "gatepost-guide(7), Deliveries are refused: 400"},
    {"INVALID_SIGNATURE", EX_CONFIG, "it has another secret, or the body was changed on the way",
     "gatepost-guide(7), Deliveries are refused: 401"},
    {"STALE_TIMESTAMP", EX_CONFIG, "its clock differs from this machine's",
     "synchronise both clocks: timedatectl set-ntp true"},
    {"FORBIDDEN", EX_CONFIG, "it does not take this webhook_id",
     "gatepost-guide(7), Deliveries are refused: 403"},
    {"NOT_FOUND", EX_CONFIG, "no source has the path that it gets",
     "gatepost-guide(7), Deliveries are refused: 404"},
    {"UNAVAILABLE", EX_UNAVAILABLE, "it cannot store deliveries now",
     "gatepost-guide(7), Deliveries are refused: 503"},
    {NULL, EX_UNAVAILABLE, "gatepostd does not answer so", "see what answers at this URL, and its log"},
};

/* Choose the URL of a source. Returns 0, or -1 when only gatepostd knows the port. */
static int
choose_url(const struct doctor *doctor, const struct config_source *source, struct own_url *to)
{
        *to = (struct own_url){0};
        if (doctor->url == NULL)
                return own_url_make(&doctor->config->listen[0], doctor->config->tls_certificate_file,
                                    source->path, to);
        to->url = receiver_url_make(doctor->url, source->path);
        return 0;
}

/* Return the meaning of an answer; the last one if gatepostd does not give it. */
static const struct meaning *
find_meaning(const struct http_client_answer *answer)
{
        struct error ignored;
        struct json_value *body = json_tree_parse(answer->body, answer->len, &ignored);
        const char *code = json_tree_text(json_tree_get(body, "error"), "code");
        const struct meaning *meaning = meanings;

        while (meaning->code != NULL && (code == NULL || strcmp(code, meaning->code) != 0))
                meaning++;
        json_tree_free(body);
        return meaning;
}

/* Return whether the receiver has accepted a delivery, and not a server that answers 200 to everything. */
static int
is_accepted(const struct test_delivery *delivery)
{
        struct error ignored;
        struct json_value *body =
            delivery->answer.status != 200
                ? NULL
                : json_tree_parse(delivery->answer.body, delivery->answer.len, &ignored);
        const char *id = json_tree_text(body, "deliveryId");
        int result = id != NULL && strcmp(id, delivery->signing.delivery_id) == 0;

        json_tree_free(body);
        return result;
}

static void
add_sent(struct doctor *doctor, const struct config_source *source, const struct test_delivery *delivery)
{
        struct doctor_sent *sent;

        doctor->sent = mem_resize(doctor->sent, doctor->n_sent + 1, sizeof(*doctor->sent));
        sent = &doctor->sent[doctor->n_sent++];
        *sent = (struct doctor_sent){.source = source,
                                     .sent_ms = delivery->sent_ms,
                                     .answered_ms = delivery->answered_ms,
                                     .partition = -1};
        (void)snprintf(sent->delivery_id, sizeof(sent->delivery_id), "%s", delivery->signing.delivery_id);
}

static void
report_answer(struct doctor *doctor, const struct config_source *source, const char *url,
              const struct test_delivery *delivery)
{
        const struct meaning *meaning;

        if (!delivery->has_answer) {
                finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, url, "%s", delivery->error.text),
                                   "gatepost-guide(7), Deliveries are refused");
                return;
        }
        if (is_accepted(delivery)) {
                add_sent(doctor, source, delivery);
                doctor_note(doctor, FINDING_PASSED, url, "answered 200 in %" PRId64 " ms",
                            delivery->answered_ms - delivery->sent_ms);
                return;
        }
        meaning = find_meaning(&delivery->answer);
        finding_set_remedy(doctor_fail(doctor, meaning->status, url,
                                       "a delivery of [source %s] is answered %d%s%s: %s", source->name,
                                       delivery->answer.status, meaning->code == NULL ? "" : " ",
                                       meaning->code == NULL ? "" : meaning->code, meaning->text),
                           "%s", meaning->remedy);
}

static void
try_source(struct doctor *doctor, const struct config_source *source)
{
        struct test_delivery delivery;
        struct own_url to;
        char *shown;

        if (choose_url(doctor, source, &to) != 0) {
                doctor_note(doctor, FINDING_SKIPPED, source->name,
                            "only gatepostd knows its port; use --to URL");
                return;
        }
        shown = uri_hide_secrets(to.url);
        if (test_delivery_send(source, &to, &delivery) != 0)
                (void)doctor_fail(doctor, EX_OSERR, shown, "%s", delivery.error.text);
        else
                report_answer(doctor, source, shown, &delivery);
        test_delivery_clear(&delivery);
        free(shown);
        free(to.url);
}

/* Return why no test delivery can be sent, or NULL. */
static const char *
find_obstacle(const struct doctor *doctor)
{
        const struct config *config = doctor->config;

        if (!doctor->sends)
                return "left out by --no-send";
        if (doctor->url != NULL)
                return NULL;
        if (!(config->roles & CONFIG_RECEIVER))
                return "there is no receiver here; use --to URL";
        return config->requires_proxy || config->tls_client_ca_file != NULL
                   ? "gatepostd takes connections of proxies only; use --to URL"
                   : NULL;
}

void
doctor_check_delivery(struct doctor *doctor)
{
        const struct config *config = doctor->config;
        const struct config_source *only = NULL;
        const char *obstacle = find_obstacle(doctor);

        if (obstacle != NULL) {
                doctor_note(doctor, FINDING_SKIPPED, NULL, "%s", obstacle);
                return;
        }
        if (doctor->url != NULL && receiver_url_has_path(doctor->url)) {
                only = receiver_url_source(config, doctor->url);
                if (only == NULL) {
                        finding_set_remedy(doctor_fail(doctor, EX_USAGE, "--to",
                                                       "no source has a path with which this URL ends"),
                                           "end it with the path of a source, such as %s",
                                           config->sources[0].path);
                        return;
                }
        }
        for (size_t s = 0; s < config->n_sources; s++) {
                if (only == NULL || only == &config->sources[s])
                        try_source(doctor, &config->sources[s]);
        }
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct doctor *doctor = arg;
        rd_kafka_timestamp_type_t type;
        int64_t timestamp_ms = rd_kafka_message_timestamp(message, &type);

        (void)index, (void)error;
        for (size_t i = 0; i < doctor->n_sent; i++) {
                struct doctor_sent *sent = &doctor->sent[i];

                if (message->key_len != strlen(sent->delivery_id) ||
                    memcmp(message->key, sent->delivery_id, message->key_len) != 0)
                        continue;
                sent->partition = message->partition;
                sent->offset = message->offset;
                sent->appended_ms = type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? timestamp_ms : 0;
        }
        return RANGE_GO_ON;
}

/* Read what came since the step `group`. Returns whether all records were found; -1 with the reason. */
static int
find_records(struct doctor *doctor, struct error *error)
{
        struct range *now;
        size_t n, n_found = 0;
        int result;

        if (offsets_stable_ranges(doctor->offsets, doctor->config->deliveries_topic, &now, &n,
                                  QUERY_TIMEOUT_MS, error) != 0)
                return -1;
        for (size_t i = 0; i < n && i < doctor->n_logs; i++)
                now[i].from = doctor->logs[i].to < now[i].to ? doctor->logs[i].to : now[i].to;
        result = range_read(doctor->config, NULL, now, n, on_record, doctor, error) == RANGE_DONE ? 0 : -1;
        free(now);
        for (size_t i = 0; i < doctor->n_sent; i++)
                n_found += doctor->sent[i].partition >= 0;
        return result != 0 ? -1 : n_found == doctor->n_sent;
}

/* Return whether the group has committed beyond all deliveries; -1 with the reason. */
static int
are_passed(struct doctor *doctor, struct error *error)
{
        int64_t *committed = mem_alloc(doctor->n_logs * sizeof(*committed));
        int result = offsets_committed_so_far(doctor->offsets, doctor->config->deliveries_topic,
                                              (int32_t)doctor->n_logs, committed, QUERY_TIMEOUT_MS, error);

        if (result == 0)
                result = 1;
        for (size_t i = 0; i < doctor->n_sent && result == 1; i++)
                result = committed[doctor->sent[i].partition] > doctor->sent[i].offset;
        free(committed);
        return result;
}

/* Repeat a question until the answer is not 0, or until the time is over. Returns the last answer. */
static int
repeat(int (*question)(struct doctor *doctor, struct error *error), struct doctor *doctor, int64_t until_ms,
       struct error *error)
{
        int result;

        while ((result = question(doctor, error)) == 0 && clock_monotonic_ms() < until_ms)
                clock_sleep_ms(PAUSE_MS);
        return result;
}

void
doctor_check_router(struct doctor *doctor)
{
        const char *topic = doctor->config->deliveries_topic;
        int64_t until_ms = clock_monotonic_ms() + ROUTER_TIMEOUT_MS;
        int is_found, is_passed = 0;
        struct error error;

        if (doctor->n_sent == 0)
                return;
        if (doctor->n_logs == 0) {
                doctor_note(doctor, FINDING_SKIPPED, topic,
                            "it cannot be read, so the delivery is not followed");
                return;
        }
        is_found = repeat(find_records, doctor, until_ms, &error);
        if (is_found > 0)
                is_passed = repeat(are_passed, doctor, until_ms, &error);
        if (is_found < 0 || is_passed < 0)
                doctor_note(doctor, FINDING_SKIPPED, topic, "%s", error.text);
        else if (is_found == 0)
                finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, topic,
                                               "accepted, but not there after %d s",
                                               ROUTER_TIMEOUT_MS / 1000),
                                   "gatepost-guide(7), Events are missing or repeated");
        else if (is_passed == 0 && doctor->n_routers == 0)
                finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, topic, "no router is in the group %s",
                                               doctor->config->group),
                                   "start the router: systemctl start %s", doctor->unit);
        else if (is_passed == 0)
                finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, topic,
                                               "no router has passed a test delivery within %d s",
                                               ROUTER_TIMEOUT_MS / 1000),
                                   "gatepost-guide(7), Events are missing or repeated");
        else
                doctor_note(doctor, FINDING_PASSED, topic, "routed");
}

/* Return the broker's clock less this machine's, beyond what the time of a request explains. */
static int64_t
skew_of(const struct doctor_sent *sent)
{
        if (sent->appended_ms < sent->sent_ms)
                return sent->appended_ms - sent->sent_ms;
        return sent->appended_ms > sent->answered_ms ? sent->appended_ms - sent->answered_ms : 0;
}

void
doctor_check_clock(struct doctor *doctor)
{
        for (size_t i = 0; i < doctor->n_sent; i++) {
                const struct doctor_sent *sent = &doctor->sent[i];
                int64_t skew_ms = sent->appended_ms == 0 ? 0 : skew_of(sent);
                uint64_t size_ms = (uint64_t)(skew_ms < 0 ? -skew_ms : skew_ms);
                char size[NUMBER_TEXT_SIZE];

                if (sent->appended_ms == 0)
                        continue;
                if (size_ms <= sent->source->tolerance_ms / TOLERANCE_PART) {
                        doctor_note(doctor, FINDING_PASSED, NULL, "it fits the broker's");
                        return;
                }
                (void)number_format_duration(size_ms / 1000 * 1000, size);
                finding_set_remedy(
                    doctor_fail(
                        doctor, EX_UNAVAILABLE, NULL,
                        "this machine's is %s %s the broker's: genuine deliveries may be refused as stale",
                        size, skew_ms < 0 ? "ahead of" : "behind"),
                    "synchronise the clocks of both machines: timedatectl set-ntp true");
                return;
        }
}
