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

/* Return whether the receiver has accepted a delivery, and not a server that answers 200 to everything. */
static int
is_accepted(const struct test_delivery *delivery, const struct json_value *body)
{
        const char *id = json_tree_text(body, "deliveryId");

        return delivery->answer.status == 200 && id != NULL && strcmp(id, delivery->signing.delivery_id) == 0;
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
judge_answer(struct doctor *doctor, const struct config_source *source, const char *url,
             const struct test_delivery *delivery)
{
        int status = delivery->answer.status;
        struct error ignored;
        struct json_value *body = json_tree_parse(delivery->answer.body, delivery->answer.len, &ignored);
        const struct json_value *refusal = json_tree_get(body, "error");
        const char *code = json_tree_text(refusal, "code"), *message = json_tree_text(refusal, "message");

        if (is_accepted(delivery, body)) {
                add_sent(doctor, source, delivery);
                doctor_pass(doctor, url, "answered 200");
        } else if (code == NULL || message == NULL || !answer_has_code(status, code)) {
                doctor_fail(doctor, EX_UNAVAILABLE, url, "see what answers at this URL, by its log",
                            "answered %d, but not as gatepostd does", status);
        } else {
                doctor_fail(doctor, status < 500 ? EX_CONFIG : EX_UNAVAILABLE, url,
                            "gatepost-guide(7), Deliveries are refused",
                            "a delivery of [source %s] is answered %d %s: %s", source->name, status, code,
                            message);
        }
        json_tree_free(body);
}

static void
try_source(struct doctor *doctor, const struct config_source *source)
{
        struct test_delivery delivery;
        struct receiver_url to;
        struct error error;
        char *shown;

        if (receiver_url_choose(doctor->config, doctor->url, source->path, &to, &error) != 0) {
                doctor_skip(doctor, source->name, "%s", error.text);
                return;
        }
        shown = uri_hide_secrets(to.url);
        if (test_delivery_send(source, &to, &delivery) == 0)
                judge_answer(doctor, source, shown, &delivery);
        else
                doctor_fail(doctor, EX_UNAVAILABLE, shown, "gatepost-guide(7), Deliveries are refused", "%s",
                            delivery.error.text);
        test_delivery_clear(&delivery);
        free(shown);
        free(to.url);
}

void
doctor_check_delivery(struct doctor *doctor)
{
        const struct config *config = doctor->config;
        int has_path = doctor->url != NULL && receiver_url_has_path(doctor->url);
        const struct config_source *only = has_path ? receiver_url_source(config, doctor->url) : NULL;

        if (!doctor->sends) {
                doctor_skip(doctor, NULL, "left out by --no-send");
                return;
        }
        if (has_path && only == NULL) {
                finding_set_remedy(doctor_fail(doctor, EX_USAGE, "--to", NULL,
                                               "no source has a path with which this URL ends"),
                                   "end it with the path of a source, such as %s", config->sources[0].path);
                return;
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

/* Read what came since the step `group`. Returns 0, or -1 with the reason. */
static int
find_records(struct doctor *doctor, struct error *error)
{
        struct range *now;
        size_t n;
        int result;

        if (offsets_stable_ranges(doctor->offsets, doctor->config->deliveries_topic, &now, &n,
                                  QUERY_TIMEOUT_MS, error) != 0)
                return -1;
        if (n > doctor->n_logs)
                n = doctor->n_logs; /* partitions were added meanwhile */
        for (size_t i = 0; i < n; i++)
                now[i].from = doctor->logs[i].to < now[i].to ? doctor->logs[i].to : now[i].to;
        result = range_read(doctor->config, NULL, now, n, on_record, doctor, error) == RANGE_DONE ? 0 : -1;
        free(now);
        return result;
}

static int
are_found(const struct doctor *doctor)
{
        size_t n_found = 0;

        for (size_t i = 0; i < doctor->n_sent; i++)
                n_found += doctor->sent[i].partition >= 0;
        return n_found == doctor->n_sent;
}

/* Look whether the group has committed beyond all deliveries. Returns 1 or 0; or -1 with the reason. */
static int
look_for_commits(struct doctor *doctor, struct error *error)
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

static void
report_unrouted(struct doctor *doctor)
{
        const char *topic = doctor->config->deliveries_topic;

        if (are_found(doctor) && doctor->n_routers == 0)
                doctor_fail(doctor, EX_UNAVAILABLE, topic, doctor->start, "no router is in the group %s",
                            doctor->config->group);
        else
                doctor_fail(doctor, EX_UNAVAILABLE, topic,
                            "gatepost-guide(7), Events are missing or repeated",
                            "after 30 s, a test delivery that was accepted is %s",
                            are_found(doctor) ? "not passed by a router" : "not there");
}

void
doctor_check_router(struct doctor *doctor)
{
        int64_t until_ms = clock_monotonic_ms() + ROUTER_TIMEOUT_MS;
        int result = 0;
        struct error error;

        if (doctor->n_sent == 0 || doctor->n_logs == 0) {
                doctor_skip(doctor, NULL, "no test delivery can be followed");
                return;
        }
        while (result == 0 && clock_monotonic_ms() < until_ms) {
                if (!are_found(doctor))
                        result = find_records(doctor, &error);
                if (result == 0 && are_found(doctor))
                        result = look_for_commits(doctor, &error);
                if (result == 0)
                        clock_sleep_ms(PAUSE_MS);
        }
        if (result < 0)
                doctor_skip(doctor, NULL, "%s", error.text);
        else if (result == 0)
                report_unrouted(doctor);
        else
                doctor_pass(doctor, doctor->config->deliveries_topic, "the test deliveries are routed");
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
        const struct doctor_sent *sent = doctor->sent;
        char size[NUMBER_TEXT_SIZE];
        int64_t skew_ms;
        uint64_t size_ms;

        if (doctor->n_sent == 0 || sent->appended_ms == 0) {
                doctor_skip(doctor, NULL, "the broker's clock is not known");
                return;
        }
        skew_ms = skew_of(sent);
        size_ms = (uint64_t)(skew_ms < 0 ? -skew_ms : skew_ms);
        if (size_ms <= sent->source->tolerance_ms / TOLERANCE_PART) {
                doctor_pass(doctor, NULL, "this machine's fits the broker's");
                return;
        }
        (void)number_format_duration(size_ms / 1000 * 1000, size);
        doctor_fail(doctor, EX_UNAVAILABLE, NULL,
                    "synchronise the clocks of both machines: timedatectl set-ntp true",
                    "this machine's is %s %s the broker's: genuine deliveries may be refused as stale", size,
                    skew_ms < 0 ? "ahead of" : "behind");
}
