#include "cli/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/doctor_kafka.h"
#include "cli/kafka_access.h"
#include "kafka/topics_check.h"

/* The topics, as `gatepost topics list` and the daemon check them. */

/* The present topic. */
struct topic_report {
        struct doctor *doctor;
        const struct topic_state *state;
        size_t n;
};

/* Warn if one broker alone has a partition although there are others. Returns whether it does. */
static int
check_replicas(struct doctor *doctor, const struct topic_state *state)
{
        if (!state->exists || state->replicas != 1 || doctor->n_brokers < 2)
                return 0;
        doctor_warn(doctor,
                    "a partition has 1 replica, but there are %d brokers: when its broker is down, Gatepost "
                    "stops, and with its disk the records are lost; add replicas by "
                    "kafka-reassign-partitions.sh",
                    doctor->n_brokers);
        return 1;
}

static void
report_all(struct topic_report *report, const struct findings *findings)
{
        struct doctor *doctor = report->doctor;

        for (size_t i = 0; i < findings->n; i++) {
                const struct finding *finding = &findings->items[i];

                report->n++;
                if (finding->level == FINDING_ERROR)
                        doctor_fail_as(doctor, report->state->hidden ? EX_NOPERM : EX_CONFIG, finding->text);
                else
                        doctor_warn(doctor, "%s", finding->text);
                if (finding->level == FINDING_ERROR && finding->remedy != NULL)
                        doctor_remedy(doctor, "%s", finding->remedy);
        }
}

/*
 * Kafka since 3.7 takes the number of replicas if min.insync.replicas is above it (KAFKA-15583). Brokers do
 * not tell their version.
 */
static void
check_minimum(struct topic_report *report)
{
        const struct topic_state *state = report->state;

        if (!state->exists || !state->settings_known || state->min_insync_replicas <= state->replicas)
                return;
        report->n++;
        doctor_warn(
            report->doctor,
            "min.insync.replicas (%d) is above the number of replicas (%d): Kafka before 3.7 takes no "
            "records for it; add replicas by kafka-reassign-partitions.sh, or set it to at most %d",
            (int)state->min_insync_replicas, state->replicas, state->replicas);
}

/* Whether Kafka takes records for every partition now: that takes a leader, and enough replicas in sync. */
static void
check_writable(struct topic_report *report)
{
        const struct topic_state *state = report->state;
        struct doctor *doctor = report->doctor;

        if (state->leaderless > 0)
                doctor_fail(
                    doctor, EX_UNAVAILABLE,
                    "%d of %d partitions have no leader, so that their records can be neither written "
                    "nor read",
                    state->leaderless, state->partitions);
        else if (state->exists && state->settings_known && state->in_sync < state->min_insync_replicas)
                doctor_fail(doctor, EX_UNAVAILABLE,
                            "a partition has %d replica%s in sync, fewer than min.insync.replicas (%d), so "
                            "that Kafka takes no records for it",
                            state->in_sync, state->in_sync == 1 ? "" : "s", (int)state->min_insync_replicas);
        else {
                check_minimum(report);
                return;
        }
        report->n++;
        doctor_remedy(
            doctor,
            "start the brokers that are down, or see their logs: kafka-topics.sh --bootstrap-server "
            "%s --describe --unavailable-partitions --under-min-isr-partitions shows which",
            config_tool_broker(doctor->config));
}

static void
check_topic(struct doctor *doctor, const struct topic_need *need, const struct topic_state *state)
{
        struct topic_report report = {doctor, state, 0};
        struct findings findings = {0};

        doctor_begin(doctor, "topic", "%s", need->name);
        check_writable(&report);
        topics_check(doctor->config, need, state, (doctor->config->roles & CONFIG_ROUTER) != 0, &findings,
                     NULL);
        report_all(&report, &findings);
        findings_clear(&findings);
        if (check_replicas(doctor, state))
                return;
        if (report.n == 0)
                doctor_pass(doctor, "%d partition%s, %d replica%s", state->partitions,
                            state->partitions == 1 ? "" : "s", state->replicas,
                            state->replicas == 1 ? "" : "s");
}

static const struct topic_state *
find_state(const struct topic_need *needs, const struct topic_state *states, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(needs[i].name, name) == 0)
                        return &states[i];
        }
        return NULL;
}

/* Return the number of kinds and patterns of a topic. */
static size_t
count_rules(const struct topic_table *topics, const char *name)
{
        size_t count = 0;

        for (size_t i = 0; i < topic_table_size(topics); i++)
                count += strcmp(topic_table_rule(topics, i)->topic, name) == 0;
        return count;
}

/* With the kind as key, the default, all events of a topic of one kind are in one partition. */
static void
check_keys(struct doctor *doctor, const struct topic_need *needs, const struct topic_state *states, size_t n)
{
        const struct config *config = doctor->config;
        const char *example = NULL;
        size_t count = 0, s = 0;

        while (s < config->n_sources && config->sources[s].rules.key_from != EVENT_KEY_KIND)
                s++;
        for (size_t i = 0; s < config->n_sources && i < topic_table_size(config->topics); i++) {
                const struct topic_rule *rule = topic_table_rule(config->topics, i);
                const struct topic_state *state = find_state(needs, states, n, rule->topic);

                if (strchr(rule->pattern, '*') != NULL || count_rules(config->topics, rule->topic) > 1 ||
                    state == NULL || state->partitions < 2)
                        continue;
                example = example == NULL ? rule->topic : example;
                count++;
        }
        if (count == 0)
                return;
        doctor_begin(doctor, "keys", "[source %s]", config->sources[s].name);
        doctor_note(
            doctor,
            "key = kind: all events of %s%s go to one of its partitions, so one consumer of a group gets "
            "them all; if several are to share them, set key = delivery-id or a pointer such as /invoiceId",
            example, count == 1 ? "" : ", and of other topics of one kind,");
}

/* What `deliveries` takes, as from a receiver with a larger max_body, must fit into the others, too. */
static void
check_sizes(struct doctor *doctor, const struct topic_need *needs, const struct topic_state *states, size_t n)
{
        for (size_t i = 1; i < n; i++) {
                if (!states[0].settings_known || !states[i].settings_known ||
                    states[i].max_message_bytes >= states[0].max_message_bytes)
                        continue;
                doctor_begin(doctor, "topic", "%s", needs[i].name);
                doctor_warn(doctor,
                            "max.message.bytes is %" PRId64 ", and that of %s %" PRId64
                            ": what is between them is accepted, and cannot be published; raise it, and give "
                            "receivers and routers the same max_body",
                            states[i].max_message_bytes, needs[0].name, states[0].max_message_bytes);
                return;
        }
}

/* The topics of Kafka itself that a router needs: for its committed offsets, and its transactions. */
static void
check_internal(struct doctor *doctor)
{
        static const struct topic_need needs[] = {{"__consumer_offsets", TOPIC_EVENTS},
                                                  {"__transaction_state", TOPIC_EVENTS}};
        struct topic_state states[ARRAY_LEN(needs)];
        struct error ignored;

        if (doctor->n_brokers < 2 ||
            topics_describe_partitions(doctor->client, needs, ARRAY_LEN(needs), states,
                                       KAFKA_ACCESS_TIMEOUT_MS, &ignored) != 0)
                return;
        for (size_t i = 0; i < ARRAY_LEN(needs); i++) {
                if (!states[i].exists || states[i].replicas != 1)
                        continue; /* or this account may not see it */
                doctor_begin(doctor, "topic", "%s", needs[i].name);
                (void)check_replicas(doctor, &states[i]);
        }
}

void
doctor_check_topics(struct doctor *doctor)
{
        const struct config *config = doctor->config;
        size_t n, n_checked;
        struct topic_need *needs;
        struct topic_state *states;
        struct error error;

        if (doctor_kafka_is_embedded(doctor, "topics"))
                return;
        needs = topics_needed(config, &n);
        states = mem_alloc(n * sizeof(*states));
        n_checked = config->roles & CONFIG_ROUTER ? n : 1; /* a receiver uses only `deliveries` */
        doctor_begin(doctor, "topic", "%s", "");
        if (topics_describe(doctor->client, needs, n_checked, states, KAFKA_ACCESS_TIMEOUT_MS, &error) != 0) {
                doctor_fail(doctor, EX_UNAVAILABLE, "%s", error.text);
                doctor_remedy(doctor,
                              "see whether all brokers run: kafka-broker-api-versions.sh, and their logs");
        } else {
                for (size_t i = 0; i < n_checked; i++)
                        check_topic(doctor, &needs[i], &states[i]);
                if (config->roles & CONFIG_ROUTER) {
                        check_internal(doctor);
                        check_keys(doctor, needs, states, n_checked);
                        check_sizes(doctor, needs, states, n_checked);
                }
        }
        free(states);
        free(needs);
}
