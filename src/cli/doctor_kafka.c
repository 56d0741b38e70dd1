#include "cli/doctor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kafka/client.h"
#include "kafka/client_error.h"
#include "kafka/outage.h"
#include "kafka/topics_check.h"

/* The steps about Kafka: whether it can be used, and is as the router and the receiver need it. */

#define TIMEOUT_MS 10000
#define BROKER_TIMEOUT_MS 5000
#define CLIENT_ID "gatepost" /* the client.id of routers, unless [kafka] has another */
#define SLICE_MS 500         /* after which librdkafka's errors are looked at */

/* librdkafka's last error that is not only about all brokers. */
static int last_error;

static void
on_error(rd_kafka_t *client, int code, const char *reason, void *arg)
{
        (void)arg;
        if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
                last_error = code;
        client_error_log(client, code, reason);
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        rd_kafka_conf_set_error_cb(conf, on_error);
}

/* Ask for the brokers and topics. Returns 0; or -1 with the reason, as soon as the cause is known. */
static int
ask(rd_kafka_t *client, int timeout_ms, const struct rd_kafka_metadata **metadata, struct error *error)
{
        int64_t until_ms = clock_monotonic_ms() + timeout_ms, since_s;
        char cause[OUTAGE_CAUSE_SIZE];
        rd_kafka_resp_err_t err;

        do {
                err = rd_kafka_metadata(client, 0, NULL, metadata, SLICE_MS);
                (void)rd_kafka_poll(client, 0);
        } while (err != RD_KAFKA_RESP_ERR_NO_ERROR && !outage_read(cause, &since_s) &&
                 clock_monotonic_ms() < until_ms);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                return 0;
        (void)client_unreachable(client, err, error);
        outage_end(); /* the next client has causes of its own */
        return -1;
}

/* Set the remedy of a failure to reach brokers, by librdkafka's error. */
static void
advise(const struct doctor *doctor, struct finding *finding)
{
        switch (last_error) {
        case RD_KAFKA_RESP_ERR__AUTHENTICATION:
                finding_set_remedy(finding,
                                   "correct user and password in [kafka] of %s, then: systemctl restart %s",
                                   doctor->file, doctor->unit);
                break;
        case RD_KAFKA_RESP_ERR__SSL:
                finding_set_remedy(
                    finding,
                    "correct security.protocol and ssl.* in [kafka] of %s, then: systemctl restart %s",
                    doctor->file, doctor->unit);
                break;
        default:
                finding_set_remedy(
                    finding,
                    "start the brokers, or correct bootstrap.servers and security.protocol in [kafka] of %s",
                    doctor->file);
                break;
        }
}

void
doctor_check_kafka(struct doctor *doctor)
{
        const char *brokers = config_brokers(doctor->config);
        const struct rd_kafka_metadata *metadata;
        struct error error;

        if (doctor->config->embedded) {
                doctor_note(doctor, FINDING_SKIPPED, brokers, "the broker is inside gatepostd");
                return;
        }
        outage_set_logging(0);
        doctor->client =
            client_new(RD_KAFKA_PRODUCER, doctor->config, NULL, NULL, set_callbacks, NULL, &error);
        if (doctor->client == NULL) {
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, NULL, "%s", error.text),
                                   "correct [kafka] of %s", doctor->file);
        } else if (ask(doctor->client, TIMEOUT_MS, &metadata, &error) != 0) {
                advise(doctor, doctor_fail(doctor,
                                           last_error == RD_KAFKA_RESP_ERR__AUTHENTICATION ? EX_NOPERM
                                                                                           : EX_UNAVAILABLE,
                                           brokers, "%s", error.text));
        } else {
                doctor_note(doctor, FINDING_PASSED, brokers, "librdkafka %s connects",
                            rd_kafka_version_str());
                rd_kafka_metadata_destroy(metadata);
        }
}

/* Whether a client can use a broker by its own address. Returns 0, or -1 with the reason. */
static int
try_broker(const struct config *config, const char *address, struct error *error)
{
        const struct rd_kafka_metadata *metadata;
        rd_kafka_t *client = client_new(RD_KAFKA_PRODUCER, config, address, NULL, set_callbacks, NULL, error);
        int result;

        if (client == NULL)
                return -1;
        result = ask(client, BROKER_TIMEOUT_MS, &metadata, error);
        if (result == 0)
                rd_kafka_metadata_destroy(metadata);
        (void)client_destroy(client);
        return result;
}

/* Clients connect to the addresses that the brokers advertise, whatever bootstrap.servers has. */
void
doctor_check_brokers(struct doctor *doctor)
{
        const struct rd_kafka_metadata *metadata;
        struct error error;

        if (doctor->client == NULL || ask(doctor->client, TIMEOUT_MS, &metadata, &error) != 0)
                return;
        for (int i = 0; i < metadata->broker_cnt; i++) {
                const struct rd_kafka_metadata_broker *broker = &metadata->brokers[i];
                char *address = mem_printf("%s:%d", broker->host, broker->port);

                if (try_broker(doctor->config, address, &error) == 0)
                        doctor_note(doctor, FINDING_PASSED, address,
                                    "broker %" PRId32 " is reached by the address that it advertises",
                                    broker->id);
                else
                        finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE, address,
                                                       "broker %" PRId32
                                                       " advertises this address, which cannot be used: %s",
                                                       broker->id, error.text),
                                           "start this broker, or correct its advertised.listeners");
                free(address);
        }
        rd_kafka_metadata_destroy(metadata);
}

/* Check whether the partitions of a topic can be written now. */
static void
check_replicas(struct doctor *doctor, const char *topic, const struct topic_state *state)
{
        struct finding *finding = NULL;

        if (state->leaderless > 0)
                finding = doctor_fail(doctor, EX_UNAVAILABLE, topic, "%d of %d partitions have no leader",
                                      state->leaderless, state->partitions);
        else if (state->settings_known && state->in_sync < state->min_insync_replicas)
                finding = doctor_fail(doctor, EX_UNAVAILABLE, topic,
                                      "a partition has %d replicas in sync, fewer than min.insync.replicas, "
                                      "and takes no records",
                                      state->in_sync);
        if (finding != NULL)
                finding_set_remedy(finding, "start the brokers that have its replicas");
}

void
doctor_check_topics(struct doctor *doctor)
{
        struct topic_need *needs;
        struct topic_state *states;
        struct error error;
        size_t n, n_right = 0;

        if (doctor->client == NULL)
                return;
        needs = topics_needed(doctor->config, &n);
        states = mem_alloc(n * sizeof(*states));
        if (topics_describe(doctor->client, needs, n, states, TIMEOUT_MS, &error) != 0) {
                advise(doctor, doctor_fail(doctor, EX_UNAVAILABLE, NULL, "%s", error.text));
                n = 0;
        }
        for (size_t i = 0; i < n; i++) {
                size_t before = doctor->findings.n;

                topics_check(doctor->config, &needs[i], &states[i], doctor->config->roles & CONFIG_ROUTER,
                             &doctor->findings, NULL);
                check_replicas(doctor, needs[i].name, &states[i]);
                n_right += doctor->findings.n == before;
        }
        if (n_right > 0)
                doctor_note(doctor, FINDING_PASSED, NULL, "%zu of %zu topics are in order", n_right, n);
        free(states);
        free(needs);
}

/*
 * A router has a group.instance.id, so that brokers name it INSTANCE-UUID; they name any other member
 * CLIENT-UUID (KIP-345).
 */
static int
is_router(const struct rd_kafka_group_member_info *member)
{
        size_t len = strlen(member->client_id);

        return strcmp(member->client_id, CLIENT_ID) == 0 ||
               strncmp(member->member_id, member->client_id, len) != 0 || member->member_id[len] != '-';
}

/* Other consumers take deliveries and commit them, so that they are never published. */
static void
check_members(struct doctor *doctor, const struct rd_kafka_group_info *group)
{
        doctor->n_routers = 0;
        for (int i = 0; i < group->member_cnt; i++) {
                const struct rd_kafka_group_member_info *member = &group->members[i];

                if (is_router(member)) {
                        doctor->n_routers++;
                        continue;
                }
                finding_set_remedy(doctor_fail(doctor, EX_CONFIG, group->group,
                                               "%s at %s is no router: it takes deliveries and commits them "
                                               "without publishing events",
                                               member->member_id, member->client_host),
                                   "stop this consumer, or give it another group.id");
        }
}

static void
list_members(struct doctor *doctor)
{
        const struct rd_kafka_group_list *list = NULL;
        const char *name = doctor->config->group;
        rd_kafka_resp_err_t err;

        /* DescribeConsumerGroups of librdkafka 2.0.2 aborts the process when the coordinator fails. */
        err = rd_kafka_list_groups(doctor->client, name, &list, TIMEOUT_MS);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR && list->group_cnt == 1 &&
            list->groups[0].err == RD_KAFKA_RESP_ERR_NO_ERROR)
                check_members(doctor, &list->groups[0]);
        else if (err == RD_KAFKA_RESP_ERR_NO_ERROR && list->group_cnt == 0)
                doctor->n_routers = 0;
        else
                doctor_note(doctor, FINDING_SKIPPED, name, "its members cannot be listed: %s",
                            rd_kafka_err2str(err != RD_KAFKA_RESP_ERR_NO_ERROR ? err : list->groups[0].err));
        if (list != NULL)
                rd_kafka_group_list_destroy(list);
}

/* Find the committed offsets, and then how far the logs go. Returns 0, or -1 with the reason. */
static int
find_offsets(struct doctor *doctor, int64_t **committed, struct error *error)
{
        const char *topic = doctor->config->deliveries_topic;
        int32_t n;

        doctor->offsets = offsets_new(doctor->config, NULL, error);
        if (doctor->offsets == NULL)
                return -1;
        n = offsets_partitions(doctor->offsets, topic, TIMEOUT_MS, error);
        if (n < 0)
                return -1;
        *committed = mem_alloc((size_t)n * sizeof(**committed));
        if (offsets_committed_so_far(doctor->offsets, topic, n, *committed, TIMEOUT_MS, error) != 0)
                return -1;
        doctor->logs = mem_alloc((size_t)n * sizeof(*doctor->logs));
        for (int32_t p = 0; p < n; p++)
                doctor->logs[p] = (struct range){.topic = topic, .partition = p};
        doctor->n_logs = (size_t)n;
        return offsets_bounds(doctor->offsets, doctor->logs, (size_t)n, TIMEOUT_MS, error);
}

static void
check_offsets(struct doctor *doctor)
{
        int64_t *committed = NULL;
        struct error error;

        if (find_offsets(doctor, &committed, &error) != 0) {
                doctor->n_logs = 0;
                doctor_note(doctor, FINDING_SKIPPED, doctor->config->group, "%s", error.text);
        }
        for (size_t p = 0; p < doctor->n_logs; p++) {
                if (committed[p] > doctor->logs[p].to)
                        finding_set_remedy(doctor_fail(doctor, EX_UNAVAILABLE,
                                                       doctor->config->deliveries_topic,
                                                       "partition %zu was routed up to offset %" PRId64
                                                       ", but its log ends at %" PRId64
                                                       ": the log was lost, or the topic created again",
                                                       p, committed[p], doctor->logs[p].to),
                                           "gatepost-guide(7), DISASTERS");
        }
        free(committed);
}

void
doctor_check_group(struct doctor *doctor)
{
        size_t before = doctor->findings.n;

        if (doctor->client == NULL)
                return;
        list_members(doctor);
        check_offsets(doctor);
        if (doctor->findings.n == before)
                doctor_note(doctor, FINDING_PASSED, doctor->config->group,
                            "%d router%s, and its offsets are within the logs", doctor->n_routers,
                            doctor->n_routers == 1 ? "" : "s");
}
