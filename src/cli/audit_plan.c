#include "cli/audit_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "cli/audit_bounds.h"
#include "kafka/message.h"
#include "kafka/offsets.h"
#include "kafka/topics.h"
#include "model/release.h"

/* A transaction that is being committed is waited for. */
#define COMMITTED_TIMEOUT_MS 60000

#define SIGNED_UNKNOWN INT64_MAX /* never too early */

int
audit_plan_refuse(int status, const char *reason)
{
        fprintf(stderr, "gatepost audit: %s\n", reason);
        return status;
}

int
audit_plan_failed(enum range_result result, const struct error *error)
{
        if (result == RANGE_AWAY)
                return audit_plan_refuse(EX_UNAVAILABLE, error->text);
        if (result == RANGE_DENIED)
                return audit_plan_refuse(EX_NOPERM, error->text);
        if (result == RANGE_FAILED)
                return audit_plan_refuse(EX_OSERR, error->text);
        fprintf(stderr, "gatepost audit: %s; try again\n", error->text);
        return EX_TEMPFAIL;
}

/* The number of a topic that a router writes, made if there is none. */
static uint32_t
number_topic(struct audit_plan *plan, const char *topic)
{
        size_t i = 0;

        while (i < plan->n_topics && strcmp(plan->topics[i], topic) != 0)
                i++;
        if (i == plan->n_topics)
                plan->topics[plan->n_topics++] = topic;
        return (uint32_t)i;
}

static void
number_topics(struct audit_plan *plan)
{
        const struct config *config = plan->config;
        size_t n_rules = topic_table_size(config->topics);

        plan->topics = mem_alloc((n_rules + 1) * sizeof(*plan->topics));
        plan->of_rule = mem_alloc(n_rules * sizeof(*plan->of_rule));
        for (size_t i = 0; i < n_rules; i++)
                plan->of_rule[i] = number_topic(plan, topic_table_rule(config->topics, i)->topic);
        plan->quarantine = number_topic(plan, config->quarantine_topic);
}

/* Room for the partitions of all topics. Returns 0, or -1 with the reason. */
static int
list_partitions(struct audit_plan *plan, struct offsets *offsets, struct error *error)
{
        int32_t n = offsets_partitions(offsets, plan->config->deliveries_topic, AUDIT_TIMEOUT_MS, error);

        if (n < 0)
                return -1;
        plan->n_deliveries = (size_t)n;
        plan->deliveries = mem_alloc(plan->n_deliveries * sizeof(*plan->deliveries));
        plan->begin = mem_alloc(plan->n_deliveries * sizeof(*plan->begin));
        plan->committed = mem_alloc(plan->n_deliveries * sizeof(*plan->committed));
        plan->from_ms = mem_alloc(plan->n_deliveries * sizeof(*plan->from_ms));
        for (int32_t p = 0; p < n; p++)
                plan->deliveries[p] = (struct range){.topic = plan->config->deliveries_topic, .partition = p};

        plan->first_range = mem_alloc((plan->n_topics + 1) * sizeof(*plan->first_range));
        for (size_t t = 0; t < plan->n_topics; t++) {
                n = offsets_partitions(offsets, plan->topics[t], AUDIT_TIMEOUT_MS, error);
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

/* A router that has gone beyond the end of `deliveries` has read another topic of that name. */
static int
check_committed(const struct audit_plan *plan)
{
        for (size_t p = 0; p < plan->n_deliveries; p++) {
                if (plan->committed[p] <= plan->deliveries[p].to)
                        continue;
                fprintf(stderr,
                        "gatepost audit: partition %zu of %s ends at offset %" PRId64
                        " but was routed up to %" PRId64 ": was the topic deleted and made anew?\n",
                        p, plan->config->deliveries_topic, plan->deliveries[p].to, plan->committed[p]);
                return EX_DATAERR;
        }
        return 0;
}

/* Ask for everything in the order that the header tells. */
static int
ask(struct audit_plan *plan, struct offsets *offsets)
{
        struct error error;
        int status;

        if (list_partitions(plan, offsets, &error) != 0 ||
            offsets_committed(offsets, plan->config->deliveries_topic, (int32_t)plan->n_deliveries,
                              plan->committed, COMMITTED_TIMEOUT_MS, &error) != 0 ||
            audit_bounds_ask(offsets, plan->published, plan->n_published, &error) != 0 ||
            audit_bounds_ask(offsets, plan->deliveries, plan->n_deliveries, &error) != 0)
                return audit_plan_refuse(offsets_is_denied(offsets) ? EX_NOPERM : EX_UNAVAILABLE, error.text);
        for (size_t p = 0; p < plan->n_deliveries; p++)
                plan->begin[p] = plan->deliveries[p].from;
        status = check_committed(plan);
        if (status == 0)
                status = audit_bounds_judge(plan);
        if (status == 0 && audit_bounds_narrow(plan, offsets, &error) != 0)
                status = audit_plan_refuse(EX_UNAVAILABLE, error.text);
        return status;
}

static int64_t
slack(const struct config *config)
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
        plan->slack_ms = slack(config);
        offsets = offsets_new(config, bootstrap, &error);
        if (offsets == NULL)
                return audit_plan_refuse(EX_CONFIG, error.text);
        number_topics(plan);
        status = ask(plan, offsets);
        offsets_free(offsets);
        return status;
}

void
audit_plan_free(struct audit_plan *plan)
{
        free(plan->deliveries);
        free(plan->begin);
        free(plan->committed);
        free(plan->from_ms);
        free(plan->topics);
        free(plan->first_range);
        free(plan->of_rule);
        free(plan->published);
        free(plan->topic_of);
        free(plan->kept_ms);
}

int64_t
audit_plan_deleted(const struct audit_plan *plan, size_t partition)
{
        int64_t committed = plan->committed[partition] < 0 ? 0 : plan->committed[partition];

        return plan->begin[partition] > committed ? plan->begin[partition] - committed : 0;
}

/*
 * When a delivery was signed; takes a record of quarantine, too. Returns SIGNED_UNKNOWN for a release, which keeps the time of the
 * record that was released, and where no time can be read.
 */
static int64_t
delivery_signed_ms(const struct record *delivery)
{
        int64_t signed_s = record_signed_s(delivery);
        struct release_id released;

        return signed_s < 0 || release_id_parse(delivery->released, &released) == 0 ? SIGNED_UNKNOWN
                                                                                    : signed_s * 1000;
}

/* The same for the delivery of an event. */
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

/* Whether a delivery of a partition that was signed then may be older than those that are compared. */
static int
is_signed_too_early(const struct audit_plan *plan, size_t partition, int64_t signed_ms)
{
        int64_t from_ms = plan->from_ms[partition];

        return from_ms != AUDIT_FROM_BEGINNING && signed_ms < from_ms - plan->slack_ms;
}

/* Whether a delivery is recent enough to be judged in a partition. */
static int
judges(const struct audit_plan *plan, const struct record *delivery, size_t partition)
{
        return delivery->timestamp_ms >= plan->from_ms[partition] &&
               !is_signed_too_early(plan, partition, delivery_signed_ms(delivery));
}

int
audit_plan_judges(const struct audit_plan *plan, const struct record *delivery)
{
        return judges(plan, delivery, (size_t)delivery->partition);
}

int
audit_plan_demands(const struct audit_plan *plan, const struct record *delivery, uint32_t topic,
                   struct span key)
{
        size_t p = (size_t)delivery->partition;
        size_t first = plan->first_range[topic], n = plan->first_range[topic + 1] - first;

        if (delivery->offset >= plan->committed[p] || !judges(plan, delivery, p))
                return 0;
        /* Before partitions were added it may have been another one; what comes of the delivery is looked for by today's. */
        if (!judges(plan, delivery, (size_t)message_partition(delivery->key, (int32_t)plan->n_deliveries)))
                return 0;
        if (key.len > 0)
                return delivery->timestamp_ms >=
                       plan->kept_ms[first + (size_t)message_partition(key, (int32_t)n)];
        for (size_t i = first; i < first + n; i++) { /* without a key it may be in any of them */
                if (delivery->timestamp_ms < plan->kept_ms[i])
                        return 0;
        }
        return 1;
}

/*
 * The partition of `deliveries` that a published record came from, by today's number of them; n_deliveries when it does not
 * say.
 */
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

int64_t
audit_plan_checked_from(const struct audit_plan *plan, uint32_t topic)
{
        int64_t from = AUDIT_FROM_BEGINNING, now = clock_now_ms();
        size_t n_kept = 0;

        for (size_t p = 0; p < plan->n_deliveries; p++) {
                if (plan->from_ms[p] > from && plan->from_ms[p] <= now)
                        from = plan->from_ms[p];
        }
        for (size_t i = plan->first_range[topic]; i < plan->first_range[topic + 1]; i++) {
                if (plan->kept_ms[i] == AUDIT_NEVER)
                        continue;
                n_kept++;
                if (plan->kept_ms[i] > from)
                        from = plan->kept_ms[i];
        }
        return n_kept == 0 ? AUDIT_NEVER : from;
}
