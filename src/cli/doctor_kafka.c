#include "cli/doctor.h"

#include <inttypes.h>
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
#define SLICE_MS 500         /* after which librdkafka's errors are looked at */
#define CLIENT_ID "gatepost" /* the client.id of routers, unless [kafka] has another */

static int is_login_refused; /* librdkafka's last error says so */

static void
on_error(rd_kafka_t *client, int code, const char *reason, void *arg)
{
        (void)arg;
        is_login_refused = code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
                           (is_login_refused && code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
        client_error_log(client, code, reason);
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        rd_kafka_conf_set_error_cb(conf, on_error);
}

/* Ask for the brokers. Returns them; or NULL with the reason, as soon as a cause is known. */
static const struct rd_kafka_metadata *
ask_brokers(rd_kafka_t *client, int timeout_ms, struct error *error)
{
        const struct rd_kafka_metadata *metadata = NULL;
        int64_t until_ms = clock_monotonic_ms() + timeout_ms, since_s;
        char cause[OUTAGE_CAUSE_SIZE];
        rd_kafka_resp_err_t err;

        do {
                err = rd_kafka_metadata(client, 0, NULL, &metadata, SLICE_MS);
                (void)rd_kafka_poll(client, 0);
        } while (err != RD_KAFKA_RESP_ERR_NO_ERROR && !outage_read(cause, &since_s) &&
                 clock_monotonic_ms() < until_ms);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                (void)client_unreachable(client, err, error);
        outage_end(); /* the next client has causes of its own */
        return err == RD_KAFKA_RESP_ERR_NO_ERROR ? metadata : NULL;
}

static void
report_unusable(struct doctor *doctor, const struct error *error)
{
        struct finding *finding =
            doctor_fail(doctor, is_login_refused ? EX_NOPERM : EX_UNAVAILABLE, NULL, NULL, "%s", error->text);

        finding_set_remedy(finding, "%s in [kafka] of %s, then: %s",
                           is_login_refused
                               ? "correct user and password"
                               : "start the brokers, or correct bootstrap.servers and security.protocol",
                           doctor->file, doctor->restart);
}

void
doctor_check_kafka(struct doctor *doctor)
{
        const struct rd_kafka_metadata *metadata = NULL;
        struct error error;

        if (doctor->config->embedded) {
                doctor_skip(doctor, NULL, "the broker is inside gatepostd");
                return;
        }
        outage_set_logging(0);
        doctor->client =
            client_new(RD_KAFKA_PRODUCER, doctor->config, NULL, NULL, set_callbacks, NULL, &error);
        if (doctor->client != NULL)
                metadata = ask_brokers(doctor->client, TIMEOUT_MS, &error);
        if (metadata == NULL) {
                report_unusable(doctor, &error);
                return;
        }
        doctor_pass(doctor, NULL, "librdkafka %s connects", rd_kafka_version_str());
        rd_kafka_metadata_destroy(metadata);
}

/* Whether a client can use a broker by one address. Returns 0, or -1 with the reason. */
static int
try_broker(const struct config *config, const char *address, struct error *error)
{
        rd_kafka_t *client = client_new(RD_KAFKA_PRODUCER, config, address, NULL, set_callbacks, NULL, error);
        const struct rd_kafka_metadata *metadata;

        if (client == NULL)
                return -1;
        metadata = ask_brokers(client, BROKER_TIMEOUT_MS, error);
        if (metadata != NULL)
                rd_kafka_metadata_destroy(metadata);
        (void)client_destroy(client);
        return metadata == NULL ? -1 : 0;
}

/* Clients connect to the addresses that the brokers advertise, whatever bootstrap.servers has. */
void
doctor_check_brokers(struct doctor *doctor)
{
        const struct rd_kafka_metadata *metadata;
        struct error error;

        if (doctor->client == NULL || (metadata = ask_brokers(doctor->client, TIMEOUT_MS, &error)) == NULL)
                return;
        for (int i = 0; i < metadata->broker_cnt; i++) {
                const struct rd_kafka_metadata_broker *broker = &metadata->brokers[i];
                char *address = mem_printf("%s:%d", broker->host, broker->port);

                if (try_broker(doctor->config, address, &error) == 0)
                        doctor_pass(doctor, address,
                                    "broker %" PRId32 " answers at the address that it advertises",
                                    broker->id);
                else
                        doctor_fail(doctor, EX_UNAVAILABLE, address,
                                    "start this broker, or correct its advertised.listeners",
                                    "broker %" PRId32 " advertises this address. %s", broker->id, error.text);
                free(address);
        }
        rd_kafka_metadata_destroy(metadata);
}

/* Check whether the partitions of a topic can be written now. */
static void
check_replicas(struct doctor *doctor, const char *topic, const struct topic_state *state)
{
        static const char remedy[] = "start the brokers that have its replicas";

        if (state->leaderless > 0)
                doctor_fail(doctor, EX_UNAVAILABLE, topic, remedy, "%d of %d partitions have no leader",
                            state->leaderless, state->partitions);
        else if (state->settings_known && state->in_sync < state->min_insync_replicas)
                doctor_fail(doctor, EX_UNAVAILABLE, topic, remedy,
                            "a partition has %d replicas in sync, fewer than min.insync.replicas",
                            state->in_sync);
}

void
doctor_check_topics(struct doctor *doctor)
{
        struct topic_need *needs;
        struct topic_state *states;
        struct error error;
        int is_routed = (doctor->config->roles & CONFIG_ROUTER) != 0;
        size_t n, n_right = 0, n_unseen = 0;

        if (doctor->client == NULL)
                return;
        needs = topics_needed(doctor->config, &n);
        if (!is_routed)
                n = 1; /* `deliveries` is the first */
        states = mem_alloc(n * sizeof(*states));
        if (topics_describe(doctor->client, needs, n, states, TIMEOUT_MS, &error) != 0) {
                report_unusable(doctor, &error);
                n = 0;
        }
        for (size_t i = 0; i < n; i++) {
                size_t before = doctor->findings.n;

                /* One that is missing or hidden stands for all. */
                if (!states[i].exists && n_unseen++ > 0)
                        continue;
                topics_check(doctor->config, &needs[i], &states[i], is_routed, &doctor->findings, NULL);
                check_replicas(doctor, needs[i].name, &states[i]);
                n_right += doctor->findings.n == before;
        }
        if (n_unseen > 1)
                (void)findings_add(&doctor->findings, FINDING_NOTE, NULL, "so are %zu others", n_unseen - 1);
        if (n_right > 0)
                doctor_pass(doctor, NULL, "%zu of %zu are in order", n_right, n);
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
check_members(struct doctor *doctor)
{
        const struct rd_kafka_group_list *list = NULL;
        const struct rd_kafka_group_info *group;

        /* DescribeConsumerGroups of librdkafka 2.0.2 aborts the process when the coordinator fails. */
        if (rd_kafka_list_groups(doctor->client, doctor->config->group, &list, TIMEOUT_MS) != 0)
                return;
        group = list->group_cnt == 1 && list->groups[0].err == 0 ? &list->groups[0] : NULL;
        doctor->n_routers = list->group_cnt == 1 && group == NULL ? -1 : 0;
        for (int i = 0; group != NULL && i < group->member_cnt; i++) {
                const struct rd_kafka_group_member_info *member = &group->members[i];

                if (is_router(member))
                        doctor->n_routers++;
                else
                        doctor_fail(doctor, EX_CONFIG, group->group,
                                    "stop this consumer, or give it another group.id",
                                    "%s at %s is no router, so what it takes is never published",
                                    member->member_id, member->client_host);
        }
        rd_kafka_group_list_destroy(list);
}

/* Find the committed offsets, and then how far the logs go. Returns 0, or -1 with the reason. */
static int
find_offsets(struct doctor *doctor, int64_t **committed, struct error *error)
{
        const char *topic = doctor->config->deliveries_topic;
        int32_t n;

        doctor->offsets = offsets_new(doctor->config, NULL, error);
        if (doctor->offsets == NULL ||
            (n = offsets_partitions(doctor->offsets, topic, TIMEOUT_MS, error)) < 0)
                return -1;
        *committed = mem_alloc((size_t)n * sizeof(**committed));
        doctor->logs = mem_alloc((size_t)n * sizeof(*doctor->logs));
        doctor->n_logs = (size_t)n;
        for (int32_t p = 0; p < n; p++)
                doctor->logs[p] = (struct range){.topic = topic, .partition = p};
        if (offsets_committed_so_far(doctor->offsets, topic, n, *committed, TIMEOUT_MS, error) != 0)
                return -1;
        return offsets_bounds(doctor->offsets, doctor->logs, (size_t)n, TIMEOUT_MS, error);
}

void
doctor_check_group(struct doctor *doctor)
{
        size_t before = doctor->findings.n;
        int64_t *committed = NULL;
        struct error error;

        if (doctor->client == NULL)
                return;
        check_members(doctor);
        if (find_offsets(doctor, &committed, &error) != 0) {
                doctor->n_logs = 0;
                doctor_skip(doctor, doctor->config->group, "%s", error.text);
        }
        for (size_t p = 0; p < doctor->n_logs; p++) {
                if (committed[p] > doctor->logs[p].to)
                        doctor_fail(doctor, EX_UNAVAILABLE, doctor->config->deliveries_topic,
                                    "gatepost-guide(7), DISASTERS",
                                    "partition %zu was routed up to offset %" PRId64 ", but ends at %" PRId64
                                    ": the log was lost, or the topic created again",
                                    p, committed[p], doctor->logs[p].to);
        }
        if (doctor->findings.n == before)
                doctor_pass(doctor, doctor->config->group, "no other consumer, and no offset beyond a log");
        free(committed);
}
