#include "kafka/topics_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "kafka/producer.h"

#define TIMEOUT_MS 2000
#define LOOKS 5 /* a new topic may not be known to every broker yet */
#define PAUSE_MS 100
#define DEADLINE_MS 10000
#define CLOCKS_MS 30000 /* the clocks of two machines may differ by a tenth of the default `tolerance` */
#define SEGMENT_BYTES INT64_C(1073741824) /* Kafka's default */
#define HOUR_MS INT64_C(3600000)

/* A check of one topic, and the receiver of its findings. */
struct topic_check {
        const struct config *config;
        const struct topic_need *need;
        const struct topic_state *state;
        void (*found)(const struct topic_finding *finding, void *arg);
        void *arg;
        int routing_only; /* the present check concerns a router only */
};

static void report(const struct topic_check *check, int fatal, const char *format, ...) PRINTF_LIKE(3, 4);

static void
report(const struct topic_check *check, int fatal, const char *format, ...)
{
        struct topic_finding finding = {.fatal = fatal,
                                        .routing_only = check->routing_only,
                                        .topic = check->need->name};
        va_list args;

        va_start(args, format);
        (void)vsnprintf(finding.text, sizeof(finding.text), format, args);
        va_end(args);
        check->found(&finding, check->arg);
}

/* Report a wrong setting, with the command of Kafka's own tool that fixes it. */
static void
report_setting(const struct topic_check *check, int fatal, const char *what, const char *setting)
{
        report(check, fatal,
               "%s; fix it: kafka-configs.sh --bootstrap-server %s --alter --topic %s --add-config %s", what,
               config_tool_broker(check->config), check->need->name, setting);
}

static void
check_retention(const struct topic_check *check)
{
        const struct topic_state *state = check->state;
        int64_t wanted_ms = (int64_t)check->config->dedup_window_ms + INT64_C(86400000);
        char what[200], setting[64], window[NUMBER_TEXT_SIZE];
        int fatal = state->retention_ms < (int64_t)check->config->dedup_window_ms;

        if (state->compacted)
                report_setting(check, 1, "compaction is on: records that identify repeats would vanish",
                               "cleanup.policy=delete");
        if (state->retention_bytes >= 0)
                report_setting(check, 1,
                               "retention.bytes is limited: records may be deleted within dedup_window",
                               "retention.bytes=-1");
        if (state->retention_ms < 0 || state->retention_ms >= wanted_ms)
                return;
        (void)snprintf(what, sizeof(what), "retention.ms is %" PRId64 ", %s dedup_window (%s)",
                       state->retention_ms, fatal ? "shorter than" : "less than a day longer than",
                       number_format_duration(check->config->dedup_window_ms, window));
        (void)snprintf(setting, sizeof(setting), "retention.ms=%" PRId64, wanted_ms);
        report_setting(check, fatal, what, setting);
}

/* Check a limit of the size of records. */
static void
check_limit(const struct topic_check *check, const char *name, int64_t bytes, int64_t remedy)
{
        char what[128], setting[64];

        if (bytes >= config_max_record(check->config))
                return;
        (void)snprintf(what, sizeof(what), "%s is %" PRId64 ", less than max_body and 64 KiB", name, bytes);
        (void)snprintf(setting, sizeof(setting), "%s=%" PRId64, name, remedy);
        report_setting(check, 1, what, setting);
}

/* Kafka also refuses what does not fit into a segment. */
static void
check_record_size(const struct topic_check *check)
{
        const struct topic_state *state = check->state;

        check_limit(check, "max.message.bytes", state->max_message_bytes, config_max_record(check->config));
        if (state->segment_bytes != 0)
                check_limit(check, "segment.bytes", state->segment_bytes, SEGMENT_BYTES);
}

/* Receivers with another configuration may write records larger than this configuration's max_body. */
static void
check_receive_limit(const struct topic_check *check)
{
        const struct config *config = check->config;
        int64_t largest = check->state->max_message_bytes;
        char line[NUMBER_TEXT_SIZE] = "the default";

        if (!(config->roles & CONFIG_ROUTER) || config_receive_limit(config) >= largest + CONFIG_ANSWER_BYTES)
                return;
        if (config->receive_line != 0)
                (void)snprintf(line, sizeof(line), "line %zu", config->receive_line);
        report(check, 0,
               "max.message.bytes is %" PRId64 ", but receive.message.max.bytes, in [kafka], is %" PRId64
               " (%s): the router could not read on at a delivery of that size; set the latter to at least "
               "%" PRId64 ", or the former to what receivers need",
               largest, config_receive_limit(config), line, config_receive_needed(config, largest));
}

/* Return the limit that counts for this one, of which the broker may not have all. */
static enum topic_limit
find_limit(const struct topic_state *state, enum topic_limit limit)
{
        int is_set = state->limits & 1u << limit && state->limits_ms[limit] != INT64_MAX;

        return is_set || !(state->limits & 1u << TOPIC_DIFFERENCE_MAX) ? limit : TOPIC_DIFFERENCE_MAX;
}

static int
is_too_small(const struct topic_state *state, enum topic_limit limit, int64_t needed_ms)
{
        return state->limits & 1u << limit && state->limits_ms[limit] < needed_ms;
}

/*
 * Kafka refuses a record for good whose timestamp differs by more from the broker's clock. librdkafka sets it
 * when it gets the record from any of our producers, whatever the age of the delivery, as after a lag, from
 * the spool or from quarantine. So it is at most as old as a record may wait for its append, longest in a
 * receiver; and by the clocks it may be off in both directions. The remedies are Kafka's defaults.
 */
static void
check_timestamps(const struct topic_check *check)
{
        const struct topic_state *state = check->state;
        enum topic_limit before = find_limit(state, TOPIC_BEFORE_MAX),
                         after = find_limit(state, TOPIC_AFTER_MAX), wrong;
        int64_t needed_ms = CLOCKS_MS + (int64_t)producer_longest_wait_ms(check->config);
        char what[200], setting[80];

        if (state->log_append_time)
                return; /* the broker sets the timestamp */
        if (is_too_small(state, before, needed_ms)) {
                wrong = before;
        } else if (is_too_small(state, after, CLOCKS_MS)) {
                wrong = after;
                needed_ms = CLOCKS_MS;
        } else {
                return;
        }
        (void)snprintf(what, sizeof(what),
                       "%s is %" PRId64 ", less than %" PRId64
                       ": Kafka would refuse records that have waited or by a clock that differs",
                       topic_settings_limit(wrong), state->limits_ms[wrong], needed_ms);
        (void)snprintf(setting, sizeof(setting), "%s=%" PRId64, topic_settings_limit(wrong),
                       wrong == TOPIC_AFTER_MAX ? HOUR_MS : INT64_MAX);
        report_setting(check, 1, what, setting);
}

void
topics_check(const struct config *config, const struct topic_need *need, const struct topic_state *state,
             void (*found)(const struct topic_finding *finding, void *arg), void *arg)
{
        struct topic_check check = {config, need, state, found, arg, 0};

        if (state->hidden) {
                report(&check, 1,
                       "the account may not see it, so it lacks the permission to %s it, or there is no such "
                       "topic; gatepost-guide(7) has the permissions that each account needs",
                       need->use == TOPIC_DELIVERIES ? "read (router) or write (receiver)" : "write");
                return;
        }
        if (!state->exists) {
                char *command = config_command(config->file);

                report(&check, 1, "the topic is missing; create it: %s topics create", command);
                free(command);
                return;
        }
        if (!state->settings_known) {
                report(&check, 0,
                       "its settings may not be read, so they are not checked; allow the account "
                       "DescribeConfigs on it");
                return;
        }
        check_record_size(&check);
        check_timestamps(&check);
        check.routing_only = 1;
        if (state->replicas >= 3 && state->min_insync_replicas < 2)
                report_setting(&check, 0,
                               "min.insync.replicas is 1: an acknowledged record may be on one broker only",
                               "min.insync.replicas=2");
        if (state->replicas >= 2 && state->min_insync_replicas >= state->replicas)
                report_setting(
                    &check, 0,
                    "min.insync.replicas is the number of replicas: when one broker is down, nothing can "
                    "be written to it, and a router that has tried to stops until the broker is back",
                    state->replicas == 2 ? "min.insync.replicas=1" : "min.insync.replicas=2");
        if (state->unclean_election)
                report_setting(&check, 0, "unclean leader election is on: acknowledged records may be lost",
                               "unclean.leader.election.enable=false");
        if (need->use != TOPIC_DELIVERIES) {
                if (state->compacted)
                        report_setting(&check, 0,
                                       "compaction is on: only the last record with each key is kept",
                                       "cleanup.policy=delete");
                if (state->retention_ms >= 0 && state->retention_ms < HOUR_MS)
                        report_setting(
                            &check, 0,
                            "retention.ms is less than an hour: records may be deleted before they "
                            "are read",
                            "retention.ms=604800000");
                return;
        }
        check_retention(&check);
        check_receive_limit(&check);
        if (!state->log_append_time)
                report_setting(&check, 0,
                               "message.timestamp.type is not LogAppendTime: dedup_window follows the "
                               "receivers' clocks",
                               "message.timestamp.type=LogAppendTime");
}

struct new_findings {
        int logs; /* log warnings */
        size_t n_fatal;
        struct error *error; /* the first fatal one */
};

static void
on_finding(const struct topic_finding *finding, void *arg)
{
        struct new_findings *findings = arg;
        char quoted[LOG_QUOTED_SIZE];

        if (finding->fatal && findings->n_fatal++ == 0)
                (void)error_set(findings->error, "topic %s: %s", finding->topic, finding->text);
        if (!finding->fatal && findings->logs)
                log_warning("topic is misconfigured topic=%s reason=%s", finding->topic,
                            log_quote(finding->text, quoted));
}

/* List the topics of next that before does not name. Returns an array of *n, which the caller frees. */
static struct topic_need *
find_new(const struct config *before, const struct config *next, size_t *n)
{
        size_t n_before, n_next;
        struct topic_need *known = topics_needed(before, &n_before), *needs = topics_needed(next, &n_next);

        *n = 0;
        for (size_t i = 0; i < n_next; i++) {
                size_t k = 0;

                while (k < n_before && strcmp(known[k].name, needs[i].name) != 0)
                        k++;
                if (k == n_before)
                        needs[(*n)++] = needs[i];
        }
        free(known);
        return needs;
}

/*
 * Check topics once. Returns 1 when they are right; otherwise, with the reason, 0, or -1 when Kafka did not
 * answer.
 */
static int
look(rd_kafka_t *client, const struct config *config, const struct topic_need *needs, size_t n,
     int timeout_ms, struct error *error)
{
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        struct new_findings findings = {0, 0, error};
        int result = topics_describe(client, needs, n, states, timeout_ms, error);

        for (size_t i = 0; i < n && result == 0; i++)
                topics_check(config, &needs[i], &states[i], on_finding, &findings);
        if (result == 0 && findings.n_fatal == 0) {
                findings.logs = 1;
                for (size_t i = 0; i < n; i++)
                        topics_check(config, &needs[i], &states[i], on_finding, &findings);
                result = 1;
        }
        free(states);
        return result;
}

int
topics_check_new(rd_kafka_t *client, const struct config *before, const struct config *next,
                 const atomic_int *cancelled, struct error *error)
{
        int64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;
        size_t n;
        struct topic_need *needs = find_new(before, next, &n);
        int result = n == 0;

        for (int looks = 0; looks < LOOKS && result == 0; looks++) {
                int64_t left_ms = end_ms - clock_monotonic_ms();

                if (looks > 0 && (left_ms <= 0 || atomic_load(cancelled)))
                        break;
                if (looks > 0)
                        clock_sleep_ms(PAUSE_MS);
                result =
                    look(client, next, needs, n, left_ms < TIMEOUT_MS ? (int)left_ms : TIMEOUT_MS, error);
        }
        if (result < 0)
                (void)error_prefix(error, "the new topics cannot be checked");
        free(needs);
        return result > 0 ? 0 : -1;
}
