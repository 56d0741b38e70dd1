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
#define DAY_MS INT64_C(86400000)
#define WEEK_MS (7 * DAY_MS)

/* A check of one topic. */
struct topic_check {
        const struct config *config;
        const struct topic_need *need;
        const struct topic_state *state;
        struct findings *findings;
        struct topic_changes *changes; /* may be NULL */
        char *command;                 /* gatepost, with the file of the configuration */
};

/* Set the remedy of the last finding: a change of a setting, from its present value. */
static void
mend(const struct topic_check *check, const char *setting, const char *before, const char *after)
{
        finding_set_remedy(&check->findings->items[check->findings->n - 1], "%s topics fix --yes",
                           check->command);
        if (check->changes != NULL)
                topic_changes_add(check->changes, check->need->name, setting, before, after);
}

static void
mend_number(const struct topic_check *check, const char *setting, int64_t before, int64_t after)
{
        char one[TOPIC_CHANGE_SIZE], other[TOPIC_CHANGE_SIZE];

        (void)snprintf(one, sizeof(one), "%" PRId64, before);
        (void)snprintf(other, sizeof(other), "%" PRId64, after);
        mend(check, setting, one, other);
}

static void report(const struct topic_check *check, enum finding_level level, const char *format, ...)
    PRINTF_LIKE(3, 4);

static void
report(const struct topic_check *check, enum finding_level level, const char *format, ...)
{
        char text[FINDING_TEXT_SIZE];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        (void)findings_add(check->findings, level, check->need->name, "%s", text);
}

/* Check how long `deliveries` keeps the records by which repeats are recognised. */
static void
check_window(const struct topic_check *check)
{
        const struct topic_state *state = check->state;
        int64_t window_ms = (int64_t)check->config->dedup_window_ms;
        char window[NUMBER_TEXT_SIZE];
        int is_short = state->retention_ms < window_ms;

        if (state->compacted) {
                report(check, FINDING_ERROR,
                       "compaction is on: records that identify repeats would be deleted");
                mend(check, "cleanup.policy", "compact", "delete");
        }
        if (state->retention_bytes >= 0) {
                report(check, FINDING_ERROR,
                       "retention.bytes is limited: records may be deleted within dedup_window");
                mend_number(check, "retention.bytes", state->retention_bytes, -1);
        }
        if (state->retention_ms < 0 || state->retention_ms >= window_ms + DAY_MS)
                return;
        report(check, is_short ? FINDING_ERROR : FINDING_WARNING,
               "retention.ms is %" PRId64 ", %s dedup_window (%s)", state->retention_ms,
               is_short ? "shorter than" : "less than a day longer than",
               number_format_duration(check->config->dedup_window_ms, window));
        mend_number(check, "retention.ms", state->retention_ms, window_ms + DAY_MS);
}

/* Check how long records are kept for consumers, or for an administrator. */
static void
check_kept(const struct topic_check *check)
{
        const struct topic_state *state = check->state;

        if (state->compacted) {
                report(check, FINDING_WARNING,
                       "compaction is on: only the last record with each key is kept");
                mend(check, "cleanup.policy", "compact", "delete");
        }
        if (state->retention_ms >= 0 && state->retention_ms < HOUR_MS) {
                report(check, FINDING_WARNING,
                       "retention.ms is less than an hour: records may be deleted before they are read");
                mend_number(check, "retention.ms", state->retention_ms, WEEK_MS);
        }
}

/* Check a limit of the size of records. */
static void
check_limit(const struct topic_check *check, const char *name, int64_t bytes, int64_t remedy)
{
        if (bytes >= config_max_record(check->config))
                return;
        report(check, FINDING_ERROR, "%s is %" PRId64 ", less than max_body and 64 KiB", name, bytes);
        mend_number(check, name, bytes, remedy);
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

        if (!(config->roles & CONFIG_ROUTER) || config_receive_limit(config) >= largest + CONFIG_ANSWER_BYTES)
                return;
        report(check, FINDING_WARNING,
               "max.message.bytes is %" PRId64 ", but receive.message.max.bytes in [kafka] %" PRId64
               ": the router would stop at a delivery of that size",
               largest, config_receive_limit(config));
        finding_set_remedy(&check->findings->items[check->findings->n - 1],
                           "in [kafka] of %s: receive.message.max.bytes = %" PRId64, config->file,
                           config_receive_needed(config, largest));
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
        report(check, FINDING_ERROR,
               "%s is %" PRId64 ", less than %" PRId64
               ": Kafka would refuse records that have waited, or by a clock that differs",
               topic_settings_limit(wrong), state->limits_ms[wrong], needed_ms);
        mend_number(check, topic_settings_limit(wrong), state->limits_ms[wrong],
                    wrong == TOPIC_AFTER_MAX ? HOUR_MS : INT64_MAX);
}

/* Check that an acknowledged record survives the loss of a broker. */
static void
check_replicas(const struct topic_check *check)
{
        const struct topic_state *state = check->state;

        if (state->replicas >= 3 && state->min_insync_replicas < 2) {
                report(check, FINDING_WARNING,
                       "min.insync.replicas is 1: an acknowledged record may be on one broker only");
                mend_number(check, "min.insync.replicas", state->min_insync_replicas, 2);
        } else if (state->replicas >= 2 && state->min_insync_replicas >= state->replicas) {
                report(check, FINDING_WARNING,
                       "min.insync.replicas is the number of replicas: nothing can be written while one "
                       "broker is down");
                mend_number(check, "min.insync.replicas", state->min_insync_replicas,
                            state->replicas == 2 ? 1 : 2);
        }
        if (state->unclean_election) {
                report(check, FINDING_WARNING,
                       "unclean leader election is on: acknowledged records may be lost");
                mend(check, "unclean.leader.election.enable", "true", "false");
        }
}

/* Check what only a router needs. */
static void
check_routing(const struct topic_check *check)
{
        check_replicas(check);
        if (check->need->use != TOPIC_DELIVERIES) {
                check_kept(check);
                return;
        }
        check_window(check);
        check_receive_limit(check);
        if (!check->state->log_append_time) {
                report(check, FINDING_WARNING,
                       "message.timestamp.type is not LogAppendTime: dedup_window follows the receivers' "
                       "clocks");
                mend(check, "message.timestamp.type", "CreateTime", "LogAppendTime");
        }
}

/* Check whether the topic, and what is set for it, can be seen. */
static int
is_visible(const struct topic_check *check)
{
        const struct topic_state *state = check->state;
        struct finding *finding;

        if (state->exists && state->settings_known)
                return 1;
        if (state->hidden) {
                finding =
                    findings_add(check->findings, FINDING_ERROR, check->need->name,
                                 "the account may not see it, so it may not %s it, or it does not exist",
                                 check->need->use == TOPIC_DELIVERIES ? "read or write" : "write");
                finding_set_remedy(finding, "gatepost-guide(7), KAFKA ACCOUNTS; %s topics create",
                                   check->command);
        } else if (!state->exists) {
                finding =
                    findings_add(check->findings, FINDING_ERROR, check->need->name, "the topic is missing");
                finding_set_remedy(finding, "%s topics create", check->command);
        } else {
                finding = findings_add(check->findings, FINDING_WARNING, check->need->name,
                                       "its settings may not be read, so they are not checked");
                finding_set_remedy(finding, "allow DescribeConfigs: gatepost-guide(7), KAFKA ACCOUNTS");
        }
        return 0;
}

void
topics_check(const struct config *config, const struct topic_need *need, const struct topic_state *state,
             int is_routed, struct findings *findings, struct topic_changes *changes)
{
        struct topic_check check = {config, need, state, findings, changes, config_command(config->file)};

        if (is_visible(&check)) {
                check_record_size(&check);
                check_timestamps(&check);
                if (is_routed)
                        check_routing(&check);
        }
        free(check.command);
}

void
topics_check_log(const struct finding *finding)
{
        char text[LOG_QUOTED_SIZE], remedy[LOG_QUOTED_SIZE];

        log_line(finding->level == FINDING_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                 "topic is misconfigured topic=%s reason=%s remedy=%s", finding->subject,
                 log_quote(finding->text, text),
                 log_quote(finding->remedy == NULL ? "" : finding->remedy, remedy));
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
 * Check topics once. Returns 1 when the guarantee holds; otherwise, with the reason, 0, or -1 when Kafka did
 * not answer.
 */
static int
look(rd_kafka_t *client, const struct config *config, const struct topic_need *needs, size_t n,
     int timeout_ms, struct findings *findings, struct error *error)
{
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        int result = topics_describe(client, needs, n, states, timeout_ms, error);
        const struct finding *first;

        findings_clear(findings);
        for (size_t i = 0; i < n && result == 0; i++)
                topics_check(config, &needs[i], &states[i], 1, findings, NULL);
        free(states);
        if (result != 0)
                return -1;
        first = findings_first(findings, FINDING_ERROR);
        if (first == NULL)
                return 1;
        (void)error_set(error, "topic %s: %s", first->subject, first->text);
        return 0;
}

int
topics_check_new(rd_kafka_t *client, const struct config *before, const struct config *next,
                 const atomic_int *cancelled, struct error *error)
{
        int64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;
        struct findings findings = {0};
        size_t n;
        struct topic_need *needs = find_new(before, next, &n);
        int result = n == 0;

        for (int looks = 0; looks < LOOKS && result == 0; looks++) {
                int64_t left_ms = end_ms - clock_monotonic_ms();

                if (looks > 0 && (left_ms <= 0 || atomic_load(cancelled)))
                        break;
                if (looks > 0)
                        clock_sleep_ms(PAUSE_MS);
                result = look(client, next, needs, n, left_ms < TIMEOUT_MS ? (int)left_ms : TIMEOUT_MS,
                              &findings, error);
        }
        if (result < 0)
                (void)error_prefix(error, "the new topics cannot be checked");
        for (size_t i = 0; i < findings.n; i++)
                topics_check_log(&findings.items[i]);
        findings_clear(&findings);
        free(needs);
        return result > 0 ? 0 : -1;
}
