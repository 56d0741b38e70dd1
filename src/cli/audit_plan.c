#include "cli/audit_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/daemon_status.h"
#include "cli/kafka_access.h"
#include "dedup/dedup.h"
#include "kafka/message.h"
#include "kafka/offsets.h"
#include "model/release.h"

/* When a delivery was signed, if that is unknown: never too early. */
#define SIGNED_UNKNOWN INT64_MAX

/* Allows for a transaction that is being committed. */
#define COMMITTED_TIMEOUT_MS 60000

/* Return the index of a topic in plan->topics, adding it if necessary. */
static uint32_t
add_topic(struct audit_plan *plan, const char *topic)
{
        size_t i = 0;

        while (i < plan->n_topics && strcmp(plan->topics[i], topic) != 0)
                i++;
        if (i == plan->n_topics)
                plan->topics[plan->n_topics++] = topic;
        return (uint32_t)i;
}

static void
list_topics(struct audit_plan *plan)
{
        const struct config *config = plan->config;
        size_t n_rules = topic_table_size(config->topics);

        plan->topics = mem_alloc((n_rules + 1) * sizeof(*plan->topics));
        plan->of_rule = mem_alloc(n_rules * sizeof(*plan->of_rule));
        for (size_t i = 0; i < n_rules; i++)
                plan->of_rule[i] = add_topic(plan, topic_table_rule(config->topics, i)->topic);
        plan->quarantine = add_topic(plan, config->quarantine_topic);
}

/* List the partitions of all topics. Returns 0, or -1 with the reason. */
static int
list_partitions(struct audit_plan *plan, struct offsets *offsets, struct error *error)
{
        int32_t n =
            offsets_partitions(offsets, plan->config->deliveries_topic, KAFKA_ACCESS_TIMEOUT_MS, error);

        if (n < 0)
                return -1;
        plan->n_deliveries = (size_t)n;
        plan->deliveries = mem_alloc(plan->n_deliveries * sizeof(*plan->deliveries));
        plan->committed = mem_alloc(plan->n_deliveries * sizeof(*plan->committed));
        plan->from_ms = mem_alloc(plan->n_deliveries * sizeof(*plan->from_ms));
        for (int32_t p = 0; p < n; p++)
                plan->deliveries[p] = (struct range){.topic = plan->config->deliveries_topic, .partition = p};

        plan->first_range = mem_alloc((plan->n_topics + 1) * sizeof(*plan->first_range));
        for (size_t t = 0; t < plan->n_topics; t++) {
                n = offsets_partitions(offsets, plan->topics[t], KAFKA_ACCESS_TIMEOUT_MS, error);
                if (n < 0)
                        return -1;
                plan->first_range[t + 1] = plan->n_published + (size_t)n;
                plan->published = mem_resize(plan->published, plan->first_range[t + 1], sizeof(struct range));
                plan->topic_of = mem_resize(plan->topic_of, plan->first_range[t + 1], sizeof(uint32_t));
                for (int32_t p = 0; p < n; p++) {
                        plan->topic_of[plan->n_published] = (uint32_t)t;
                        plan->published[plan->n_published++] =
                            (struct range){.topic = plan->topics[t], .partition = p};
                }
        }
        plan->kept_ms = mem_alloc(plan->n_published * sizeof(*plan->kept_ms));
        return 0;
}

static int
is_time(int64_t ms)
{
        return ms != AUDIT_FROM_BEGINNING && ms != AUDIT_NEVER;
}

/*
 * Find out since when the partitions of a topic are complete. A partition from which retention deleted
 * nothing is complete from the beginning, unless retention deleted records from another partition of the
 * topic: this one may have been added later, and records for its keys may have been in the other. It is then
 * complete from its first record on. Returns 0, or an exit status after printing the reason.
 */
static int
find_complete(const struct audit_plan *plan, const struct range *ranges, size_t n, int64_t *kept_ms)
{
        struct error error;
        enum range_result result;
        size_t n_whole = 0;

        for (size_t i = 0; i < n; i++) {
                kept_ms[i] = AUDIT_FROM_BEGINNING;
                n_whole += ranges[i].from == 0;
        }
        if (n_whole == n)
                return 0;
        result = range_first(plan->config, plan->bootstrap, ranges, n, kept_ms, &error);
        if (result != RANGE_DONE)
                return kafka_access_status(result, &error);
        for (size_t i = 0; i < n; i++) {
                if (ranges[i].from == 0 && is_time(kept_ms[i]))
                        kept_ms[i] += 2 * plan->slack_ms;
        }
        return 0;
}

/*
 * Return since when deliveries can be judged in a partition whose first record is from first_ms. Before, the
 * first copy of a delivery may have been deleted. A published record may come from a delivery that is older
 * by twice the slack; see audit_plan_use().
 */
static int64_t
judged_from(const struct audit_plan *plan, int64_t first_ms)
{
        int64_t trusted_ms = dedup_trusted_from(plan->config->dedup_window_ms, first_ms);
        int64_t reached_ms = first_ms + 2 * plan->slack_ms;

        return trusted_ms > reached_ms ? trusted_ms : reached_ms;
}

/*
 * Find out what can be judged and required: fill from_ms and kept_ms, by reading the first record of each
 * partition from which retention deleted records. Returns 0, or an exit status after printing the reason.
 */
static int
find_scope(struct audit_plan *plan)
{
        int status = find_complete(plan, plan->deliveries, plan->n_deliveries, plan->from_ms);

        for (size_t t = 0; t < plan->n_topics && status == 0; t++) {
                size_t first = plan->first_range[t];

                status = find_complete(plan, plan->published + first, plan->first_range[t + 1] - first,
                                       plan->kept_ms + first);
        }
        if (status != 0)
                return status;
        for (size_t p = 0; p < plan->n_deliveries; p++) {
                if (is_time(plan->from_ms[p]) && plan->deliveries[p].from > 0)
                        plan->from_ms[p] = judged_from(plan, plan->from_ms[p]);
                if (plan->from_ms[p] < plan->since_ms)
                        plan->from_ms[p] = plan->since_ms;
        }
        for (size_t i = 0; i < plan->n_published; i++) {
                if (is_time(plan->kept_ms[i]))
                        plan->kept_ms[i] += AUDIT_CLOCK_SKEW_MS;
        }
        return 0;
}

/* Shorten the ranges to what must be read. Returns 0, or -1 with the reason. */
static int
narrow_ranges(struct audit_plan *plan, struct offsets *offsets, struct error *error)
{
        int64_t earliest = AUDIT_NEVER;

        for (size_t p = 0; p < plan->n_deliveries; p++) {
                if (plan->from_ms[p] < earliest)
                        earliest = plan->from_ms[p];
                if (plan->since_ms != AUDIT_FROM_BEGINNING &&
                    offsets_begin_at(offsets, &plan->deliveries[p],
                                     dedup_restore_start(plan->config->dedup_window_ms,
                                                         plan->since_ms - 2 * plan->slack_ms),
                                     KAFKA_ACCESS_TIMEOUT_MS, error) != 0)
                        return -1;
        }
        /* audit_plan_use() leaves out older records. */
        for (size_t i = 0; i < plan->n_published && is_time(earliest); i++) {
                if (offsets_begin_at(offsets, &plan->published[i], earliest - AUDIT_CLOCK_SKEW_MS,
                                     KAFKA_ACCESS_TIMEOUT_MS, error) != 0)
                        return -1;
        }
        return 0;
}

/*
 * Check that no router has committed past the end of `deliveries`: that was another topic of this name. Count
 * the offsets that were deleted before a router committed them.
 */
static int
check_committed(struct audit_plan *plan)
{
        for (size_t p = 0; p < plan->n_deliveries; p++) {
                const struct range *range = &plan->deliveries[p];
                int64_t committed = plan->committed[p] < 0 ? 0 : plan->committed[p];

                if (committed > range->to)
                        return command_fail(EX_DATAERR,
                                            "partition %zu of %s ends at offset %" PRId64
                                            " but was routed up to %" PRId64
                                            ": was the topic deleted and recreated?",
                                            p, range->topic, range->to, committed);
                if (range->from > committed)
                        plan->n_deleted += (uint64_t)(range->from - committed);
        }
        return 0;
}

/* Return a member, or -1 if it is no whole number. */
static int64_t
read_integer(const struct json_value *object, const char *name)
{
        const struct json_value *member = json_tree_get(object, name);

        return member == NULL || member->type != JSON_NUMBER ? -1 : strtoll(member->text, NULL, 10);
}

/* An embedded broker keeps no committed offsets: ask gatepostd what it has routed. Returns an exit status. */
static int
ask_daemon(struct audit_plan *plan)
{
        struct json_value *report;
        const struct json_value *partitions;
        int status = daemon_status_read(plan->config->file, &report);

        if (status != 0)
                return status;
        for (size_t p = 0; p < plan->n_deliveries; p++)
                plan->committed[p] = -1;
        partitions = json_tree_get(report, "partitions");
        for (const struct json_value *each = partitions == NULL ? NULL : partitions->first; each != NULL;
             each = each->next) {
                int64_t partition = read_integer(each, "partition");

                if (partition >= 0 && partition < (int64_t)plan->n_deliveries)
                        plan->committed[partition] = read_integer(each, "committedOffset");
        }
        json_tree_free(report);
        return command_fail(0, "the embedded broker keeps no committed offsets; using those of gatepostd");
}

/* Ask for the committed offsets. Returns 0, or an exit status after printing the reason. */
static int
ask_committed(struct audit_plan *plan, struct offsets *offsets)
{
        struct error error;

        if (plan->config->embedded)
                return ask_daemon(plan);
        if (offsets_committed(offsets, plan->config->deliveries_topic, (int32_t)plan->n_deliveries,
                              plan->committed, COMMITTED_TIMEOUT_MS, &error) == 0)
                return 0;
        return kafka_access_fail(offsets_is_denied(offsets), error.text);
}

/* Ask Kafka in the order that the header explains. Returns 0, or an exit status after printing the reason. */
static int
ask_kafka(struct audit_plan *plan, struct offsets *offsets)
{
        struct error error;
        int status = 0, result = list_partitions(plan, offsets, &error);

        if (result == 0)
                status = ask_committed(plan, offsets);
        if (result == 0 && status == 0 &&
            (offsets_bounds(offsets, plan->published, plan->n_published, KAFKA_ACCESS_TIMEOUT_MS, &error) !=
                 0 ||
             offsets_bounds(offsets, plan->deliveries, plan->n_deliveries, KAFKA_ACCESS_TIMEOUT_MS, &error) !=
                 0))
                result = -1;
        if (result != 0)
                return kafka_access_fail(offsets_is_denied(offsets), error.text);
        if (status != 0)
                return status;
        status = check_committed(plan);
        if (status == 0)
                status = find_scope(plan);
        if (status == 0 && narrow_ranges(plan, offsets, &error) != 0)
                status = command_fail(EX_UNAVAILABLE, "%s", error.text);
        return status;
}

static int64_t
find_slack(const struct config *config)
{
        uint64_t tolerance_ms = 0;

        for (size_t i = 0; i < config->n_sources; i++) {
                if (config->sources[i].tolerance_ms > tolerance_ms)
                        tolerance_ms = config->sources[i].tolerance_ms;
        }
        return (int64_t)tolerance_ms + AUDIT_CLOCK_SKEW_MS;
}

int
audit_plan_make(const struct config *config, const char *bootstrap, int64_t since_ms, struct audit_plan *plan)
{
        struct offsets *offsets;
        struct error error;
        int status;

        memset(plan, 0, sizeof(*plan));
        plan->config = config;
        plan->bootstrap = bootstrap;
        plan->since_ms = since_ms;
        plan->slack_ms = find_slack(config);
        offsets = offsets_new(config, bootstrap, &error);
        if (offsets == NULL)
                return command_fail(EX_CONFIG, "%s", error.text);
        list_topics(plan);
        status = ask_kafka(plan, offsets);
        offsets_free(offsets);
        return status;
}

void
audit_plan_free(struct audit_plan *plan)
{
        free(plan->deliveries);
        free(plan->committed);
        free(plan->from_ms);
        free(plan->topics);
        free(plan->first_range);
        free(plan->of_rule);
        free(plan->published);
        free(plan->topic_of);
        free(plan->kept_ms);
}

/*
 * Return when a delivery, or the delivery of a record of quarantine, was signed. Returns SIGNED_UNKNOWN when
 * there is no valid time, and for a release, which keeps the time of the record that was released.
 */
static int64_t
delivery_signed_ms(const struct record *delivery)
{
        int64_t signed_s = record_signed_s(delivery);
        struct release_id released;

        return signed_s < 0 || release_id_parse(delivery->released, &released) == 0 ? SIGNED_UNKNOWN
                                                                                    : signed_s * 1000;
}

/* Likewise for the delivery of an event. */
static int64_t
event_signed_ms(const rd_kafka_message_t *message)
{
        struct span id = message_header(message, "ce_id"), time = message_header(message, "ce_time");
        int64_t signed_ms;

        if (release_delivery_id(id).len != id.len || time.len == 0 ||
            clock_parse_ms(time.data, time.len, &signed_ms) != 0)
                return SIGNED_UNKNOWN;
        return signed_ms;
}

/* Return whether a delivery signed at a time may be too old to be compared. */
static int
is_signed_too_early(const struct audit_plan *plan, size_t partition, int64_t signed_ms)
{
        int64_t from_ms = plan->from_ms[partition];

        return from_ms != AUDIT_FROM_BEGINNING && signed_ms < from_ms - plan->slack_ms;
}

/* Return whether a delivery would be recent enough to be judged in a partition. */
static int
judges_in(const struct audit_plan *plan, const struct record *delivery, size_t partition)
{
        return delivery->timestamp_ms >= plan->from_ms[partition] &&
               !is_signed_too_early(plan, partition, delivery_signed_ms(delivery));
}

int
audit_plan_judges(const struct audit_plan *plan, const struct record *delivery)
{
        return judges_in(plan, delivery, (size_t)delivery->partition);
}

int
audit_plan_requires(const struct audit_plan *plan, const struct record *delivery, uint32_t topic,
                    struct span key)
{
        size_t p = (size_t)delivery->partition;
        size_t first = plan->first_range[topic], n = plan->first_range[topic + 1] - first;

        if (delivery->offset >= plan->committed[p] || !judges_in(plan, delivery, p))
                return 0;
        /* If partitions were added, audit_plan_use() goes by the partition of the key today. */
        if (!judges_in(plan, delivery, (size_t)message_partition(delivery->key, (int32_t)plan->n_deliveries)))
                return 0;
        if (key.len > 0)
                return delivery->timestamp_ms >=
                       plan->kept_ms[first + (size_t)message_partition(key, (int32_t)n)];
        /* Without a key, the result may be in any partition. */
        for (size_t i = first; i < first + n; i++) {
                if (delivery->timestamp_ms < plan->kept_ms[i])
                        return 0;
        }
        return 1;
}

/* Return the partition of `deliveries` that a record came from, by today's number, or n_deliveries. */
static size_t
origin(const struct audit_plan *plan, const rd_kafka_message_t *message)
{
        struct span partition = message_header(message, RECORD_PARTITION);
        struct span id = release_delivery_id(message_header(message, "ce_id"));
        char text[12] = "";
        struct error error;
        uint64_t number;

        if (partition.len > 0 && partition.len < sizeof(text)) {
                memcpy(text, partition.data, partition.len);
                if (number_parse(text, 0, plan->n_deliveries - 1, &number, &error) == 0)
                        return (size_t)number;
        }
        if (id.len == 0)
                id = (struct span){message->key, message->key_len};
        return id.len == 0 ? plan->n_deliveries : (size_t)message_partition(id, (int32_t)plan->n_deliveries);
}

enum audit_use
audit_plan_use(const struct audit_plan *plan, const rd_kafka_message_t *message, uint32_t topic,
               int64_t timestamp_ms)
{
        size_t p = origin(plan, message);
        struct record quarantined;
        int64_t signed_ms;

        if (p == plan->n_deliveries || plan->from_ms[p] == AUDIT_FROM_BEGINNING)
                return AUDIT_COMPARE;
        if (timestamp_ms < plan->from_ms[p] - AUDIT_CLOCK_SKEW_MS)
                return AUDIT_LEAVE_OUT;
        if (topic == plan->quarantine) {
                message_record(message, &quarantined);
                signed_ms = delivery_signed_ms(&quarantined);
        } else {
                signed_ms = event_signed_ms(message);
        }
        return is_signed_too_early(plan, p, signed_ms) ? AUDIT_COUNT_ONLY : AUDIT_COMPARE;
}
