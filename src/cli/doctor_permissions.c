#include "cli/doctor_kafka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kafka/client.h"
#include "kafka/inquiry.h"
#include "kafka/topics.h"

/* What the account is allowed, against what the configured roles need (gatepost-guide(7)). */

#define MAX_CALLS 10
#define PAUSE_MS 500

static const struct {
        int32_t bit;
        const char *name;
} operations[] = {{INQUIRY_READ, "Read"},
                  {INQUIRY_WRITE, "Write"},
                  {INQUIRY_DESCRIBE_CONFIGS, "DescribeConfigs"}};

/* Write the names of operations: Read, Write. */
static const char *
name_operations(int32_t bits, char text[64])
{
        text[0] = '\0';
        for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
                if (bits & operations[i].bit)
                        (void)snprintf(text + strlen(text), 64 - strlen(text), "%s%s",
                                       *text == '\0' ? "" : ", ", operations[i].name);
        }
        return text;
}

/* Return what the roles need on a topic. Its own step says if a receiver may not read its settings. */
static int32_t
needed_on(const struct config *config, enum topic_use use)
{
        int32_t bits = 0;

        if (config->roles & CONFIG_RECEIVER && use == TOPIC_DELIVERIES)
                bits |= INQUIRY_WRITE;
        if (config->roles & CONFIG_ROUTER)
                bits |= INQUIRY_DESCRIBE_CONFIGS | (use == TOPIC_DELIVERIES ? INQUIRY_READ : INQUIRY_WRITE);
        return bits;
}

static const char *
account_of(const struct doctor *doctor)
{
        const char *user = config_property(doctor->config, "sasl.username");

        return user == NULL ? "ACCOUNT" : user;
}

static void
report_denied(struct doctor *doctor, const char *option, const char *name, int32_t missing)
{
        char text[64];

        (void)name_operations(missing, text);
        doctor_fail(doctor, EX_NOPERM, "the account %.100s lacks the permission %s", account_of(doctor),
                    text);
        text[strcspn(text, ",")] = '\0';
        doctor_remedy(
            doctor,
            "kafka-acls.sh --bootstrap-server %s --add --allow-principal User:%.100s --operation %s "
            "--%s %.250s; gatepost-guide(7) lists what each account needs",
            config_tool_broker(doctor->config), account_of(doctor), text, option, name);
}

static void
report_topic(struct doctor *doctor, const struct inquiry_answer *topic, int32_t needed)
{
        int32_t missing = needed & ~topic->operations;
        char text[64];

        doctor_begin(doctor, "permission", "topic %s", topic->name);
        if (topic->code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
                doctor_skip(doctor, "there is no such topic");
        else if (topic->code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
                report_denied(doctor, "topic", topic->name, needed & ~INQUIRY_DESCRIBE_CONFIGS);
        else if (!topic->is_known || topic->code != 0)
                doctor_skip(doctor, "not verified: %s",
                            topic->code == 0 ? "the broker does not say" : rd_kafka_err2str(topic->code));
        else if (missing & ~INQUIRY_DESCRIBE_CONFIGS)
                report_denied(doctor, "topic", topic->name, missing);
        else if (missing)
                doctor_warn(doctor, "without DescribeConfigs its settings cannot be checked");
        else
                doctor_pass(doctor, "%s", name_operations(needed, text));
}

static void
check_topics(struct doctor *doctor, struct dial *dial)
{
        const struct config *config = doctor->config;
        size_t n;
        struct topic_need *needs = topics_needed(config, &n);
        struct inquiry_answer *topics = mem_alloc(n * sizeof(*topics));
        struct error error;

        if (!(config->roles & CONFIG_ROUTER))
                n = 1; /* a receiver uses only the first one, `deliveries` */
        for (size_t i = 0; i < n; i++)
                topics[i].name = needs[i].name;
        if (inquiry_topics(dial, topics, n, &error) != 0) {
                doctor_begin(doctor, "permission", "topics");
                doctor_skip(doctor, "not verified: %s", error.text);
        } else {
                for (size_t i = 0; i < n; i++)
                        report_topic(doctor, &topics[i], needed_on(config, needs[i].use));
        }
        free(topics);
        free(needs);
}

/* Whether a coordinator is only not there yet, as after the first start of Kafka. */
static int
may_come(int code)
{
        return code == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
               code == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
               code == RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
}

/* What to ask a coordinator. Both functions set *code and return 0, or -1 with the reason. */
struct question {
        enum inquiry_coordinator kind;
        const char *option; /* of kafka-acls.sh */
        const char *name;
        int32_t needed;
        struct inquiry_strangers *strangers; /* of a group */
        int (*ask)(struct dial *coordinator, const struct question *question, int *code, struct error *error);
};

static int
ask_group(struct dial *coordinator, const struct question *question, int *code, struct error *error)
{
        struct inquiry_answer group = {.name = question->name};

        if (inquiry_group(coordinator, &group, question->strangers, error) != 0)
                return -1;
        *code = group.code;
        if (group.code != 0)
                return 0;
        if (!group.is_known)
                return error_set(error, "the broker does not say");
        if (!(group.operations & question->needed))
                *code = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
        return 0;
}

static int
ask_transactional_id(struct dial *coordinator, const struct question *question, int *code,
                     struct error *error)
{
        if (inquiry_transactional_id(coordinator, question->name, code, error) != 0)
                return -1;
        /* The broker refuses a producer that does not exist, after it has checked the permission. */
        if (*code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING ||
            *code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH || *code == RD_KAFKA_RESP_ERR_INVALID_TXN_STATE)
                *code = 0;
        return 0;
}

/* Find the coordinator and ask it. Returns 0 with *code, or -1 with the reason. */
static int
ask_coordinator(struct doctor *doctor, struct dial *dial, const struct question *question, int *code,
                struct error *error)
{
        struct inquiry_broker broker;
        struct dial coordinator;
        int result;

        if (inquiry_coordinator(dial, question->kind, question->name, &broker, code, error) != 0)
                return -1;
        if (*code != 0)
                return 0;
        if (broker_dialer_open(doctor->dialer, broker.host, broker.port, &coordinator, error) != 0)
                return -1;
        result = question->ask(&coordinator, question, code, error);
        dial_close(&coordinator);
        return result;
}

/* A consumer that joins the group of the routers gets partitions, and its commits hide their deliveries. */
static void
report_strangers(struct doctor *doctor, const struct inquiry_strangers *strangers)
{
        if (strangers->n_members == 0 && strangers->code == 0)
                return;
        doctor_begin(doctor, "group", "%s", doctor->config->group);
        if (strangers->code != 0) {
                doctor_skip(doctor, "not verified: %s", rd_kafka_err2str(strangers->code));
                return;
        }
        if (strangers->n == 0) {
                doctor_pass(doctor, "%d router%s", strangers->n_members,
                            strangers->n_members == 1 ? "" : "s");
                return;
        }
        doctor_fail(doctor, EX_CONFIG,
                    "%d of %d members %s no router of Gatepost, such as the client %s at %s: routers do not "
                    "get its deliveries, and those that it commits have no events",
                    strangers->n, strangers->n_members, strangers->n == 1 ? "is" : "are",
                    strangers->client_id, strangers->host);
        doctor_remedy(
            doctor,
            "stop that consumer, and give it a group.id of its own: %s is only for routers; gatepost "
            "audit finds deliveries without events",
            doctor->config->group);
}

static void
check_coordinated(struct doctor *doctor, struct dial *dial, const struct question *question)
{
        struct error error;
        char text[64];
        int code = 0, result = 0;

        doctor_begin(doctor, "permission", "%s %s", question->option, question->name);
        for (int i = 0; i < MAX_CALLS && result == 0 && (i == 0 || may_come(code)); i++) {
                if (i > 0)
                        clock_sleep_ms(PAUSE_MS);
                result = ask_coordinator(doctor, dial, question, &code, &error);
        }
        if (result != 0)
                doctor_skip(doctor, "not verified: %s", error.text);
        else if (client_is_denied(code))
                report_denied(doctor, question->option, question->name, question->needed);
        else if (code != 0)
                doctor_skip(doctor, "not verified: %s", rd_kafka_err2str(code));
        else
                doctor_pass(doctor, "%s", name_operations(question->needed, text));
}

/* Idempotent producers need a permission of their own from brokers before Kafka 2.8. */
static void
check_idempotence(struct doctor *doctor, struct dial *dial)
{
        struct error error;
        int code = 0, result = 0;

        doctor_begin(doctor, "permission", "idempotent producer");
        for (int i = 0; i < MAX_CALLS && result == 0 && (i == 0 || may_come(code)); i++) {
                if (i > 0)
                        clock_sleep_ms(PAUSE_MS);
                result = inquiry_producer_id(dial, &code, &error);
        }
        if (result != 0) {
                doctor_skip(doctor, "not verified: %s", error.text);
        } else if (client_is_denied(code)) {
                doctor_fail(doctor, EX_NOPERM, "the account %.100s may not use idempotent producers",
                            account_of(doctor));
                doctor_remedy(
                    doctor,
                    "allow it Write on the topics, and, for brokers before Kafka 2.8, IdempotentWrite on "
                    "the cluster; gatepost-guide(7) lists what each account needs");
        } else if (code != 0) {
                doctor_skip(doctor, "not verified: %s", rd_kafka_err2str(code));
        } else {
                doctor_pass(doctor, "allowed");
        }
}

static void
check_router(struct doctor *doctor, struct dial *dial)
{
        const struct config *config = doctor->config;
        char *id = mem_printf("%s-%s", config->group, config->instance);
        struct inquiry_strangers strangers = {0};
        const struct question group = {INQUIRY_OF_GROUP, "group",    config->group,
                                       INQUIRY_READ,     &strangers, ask_group};
        const struct question transactional_id = {
            INQUIRY_OF_TRANSACTIONS, "transactional-id", id, INQUIRY_WRITE, NULL, ask_transactional_id};

        check_coordinated(doctor, dial, &group);
        report_strangers(doctor, &strangers);
        check_coordinated(doctor, dial, &transactional_id);
        free(id);
}

void
doctor_check_permissions(struct doctor *doctor)
{
        struct dial dial;
        struct error error;

        if (doctor->usable == NULL)
                return;
        if (!broker_dialer_can_login(doctor->dialer)) {
                doctor_begin(doctor, "permission", "%s", "");
                doctor_skip(
                    doctor,
                    "not verified: only librdkafka can log in by %s, and it cannot ask; the test delivery "
                    "shows whether the permissions suffice",
                    broker_dialer_mechanism(doctor->dialer));
                return;
        }
        if (broker_dialer_open(doctor->dialer, doctor->usable->host, doctor->usable->port, &dial, &error) !=
            0) {
                doctor_begin(doctor, "permission", "%s", "");
                doctor_skip(doctor, "not verified: %s", error.text);
                return;
        }
        check_topics(doctor, &dial);
        if (doctor->config->roles & CONFIG_RECEIVER)
                check_idempotence(doctor, &dial);
        if (doctor->config->roles & CONFIG_ROUTER)
                check_router(doctor, &dial);
        dial_close(&dial);
}
