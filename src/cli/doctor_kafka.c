#include "cli/doctor_kafka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/kafka_access.h"
#include "cli/terminal.h"
#include "config/certificate.h"
#include "kafka/client.h"

/* The brokers: those of bootstrap.servers, librdkafka with them, and those that they advertise. */

#define DESTROY_S 2

int
doctor_kafka_is_embedded(struct doctor *doctor, const char *step)
{
        if (!doctor->config->embedded)
                return 0;
        doctor_begin(doctor, step, "%s", "");
        doctor_skip(doctor, "bootstrap.servers = embedded: the broker is inside gatepostd");
        return 1;
}

/* Call a function with each broker of bootstrap.servers. */
static void
for_each_broker(const struct config *config, void (*found)(const struct doctor_broker *broker, void *arg),
                void *arg)
{
        const char *at = config_property(config, "bootstrap.servers");

        while (at != NULL && *at != '\0') {
                struct doctor_broker broker;
                size_t len;

                at += strspn(at, " ,");
                len = strcspn(at, " ,");
                if (len > 0 && doctor_broker_parse(at, len, &broker) == 0)
                        found(&broker, arg);
                at += len;
        }
}

/* A client uses whichever broker it reaches first, so that brokers of two clusters share the deliveries. */
static void
compare_clusters(struct doctor *doctor, const struct doctor_broker *broker)
{
        const struct doctor_broker *first = doctor->usable;
        char name[DOCTOR_BROKER_TEXT_SIZE], first_name[DOCTOR_BROKER_TEXT_SIZE];

        if (*first->cluster == '\0' || *broker->cluster == '\0' ||
            strcmp(first->cluster, broker->cluster) == 0)
                return;
        doctor->has_two_clusters = 1;
        doctor_begin(doctor, "cluster", "%s", doctor_broker_format(broker, name));
        doctor_fail(doctor, EX_CONFIG,
                    "this broker is of the cluster %s, but %s is of the cluster %s: each client uses one of "
                    "them, by chance, so that deliveries get lost between them",
                    broker->cluster, doctor_broker_format(first, first_name), first->cluster);
        doctor_remedy(doctor, "name only brokers of one cluster in bootstrap.servers of %s, on all machines",
                      doctor->file);
}

static void
check_broker(const struct doctor_broker *named, void *arg)
{
        struct doctor *doctor = arg;
        struct doctor_broker broker = *named;

        if (terminal_is_interrupted() || !doctor_broker_check(doctor, &broker))
                return;
        if (doctor->usable != NULL) {
                compare_clusters(doctor, &broker);
                return;
        }
        doctor->usable = mem_alloc(sizeof(*doctor->usable));
        *doctor->usable = broker;
}

/* Brokers that ask for a certificate refuse one that has expired. */
static void
check_certificate(struct doctor *doctor)
{
        STACK_OF(X509) *own = broker_dialer_chain(doctor->dialer);
        const char *file = config_property(doctor->config, "ssl.certificate.location");
        struct error error;

        if (own == NULL)
                return;
        doctor_begin(doctor, "certificate", "%s", file == NULL ? "[kafka]" : file);
        if (certificate_chain_state(own, clock_now_ms() / 1000, "the certificate for the brokers", &error) ==
            CERTIFICATE_VALID)
                doctor_pass(doctor, "the certificate for the brokers is valid");
        else
                doctor_warn(doctor, "%s, then: %s", error.text, doctor_restart(doctor));
        sk_X509_free(own);
}

void
doctor_check_brokers(struct doctor *doctor)
{
        struct error error;

        if (doctor_kafka_is_embedded(doctor, "brokers"))
                return;
        doctor->dialer = broker_dialer_new(doctor->config, &error);
        if (doctor->dialer == NULL) {
                doctor_begin(doctor, "brokers", "%s", "");
                doctor_fail(doctor, EX_CONFIG, "%s", error.text);
                doctor_remedy(doctor, "correct this property in [kafka] of %s", doctor->file);
                return;
        }
        check_certificate(doctor);
        for_each_broker(doctor->config, check_broker, doctor);
}

/* The last error that librdkafka reports while it is polled. */
static void
on_error(rd_kafka_t *client, int code, const char *reason, void *opaque)
{
        struct error *last = opaque;

        (void)client;
        if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || last->text[0] == '\0')
                (void)error_set(last, "%s", reason);
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        rd_kafka_conf_set_error_cb(conf, on_error);
}

static void
report_client(struct doctor *doctor, rd_kafka_resp_err_t err, const struct error *last)
{
        doctor_fail(doctor, EX_UNAVAILABLE, "librdkafka %s cannot use the brokers: %s%s%s",
                    rd_kafka_version_str(), rd_kafka_err2str(err), last->text[0] == '\0' ? "" : ": ",
                    last->text);
        if (strncmp(broker_dialer_mechanism(doctor->dialer), "SCRAM-", 6) == 0 &&
            rd_kafka_version() < 0x02060100)
                doctor_remedy(
                    doctor,
                    "user and password are right, but librdkafka before 2.6.1 cannot log in to Kafka 4 "
                    "by SCRAM: use a newer one, sasl.mechanism = PLAIN, or a client certificate "
                    "(gatepost-guide(7))");
        else
                doctor_remedy(doctor, "check the properties in [kafka] of %s", doctor->file);
}

/* The clients of the daemon are librdkafka's, with the same properties. */
void
doctor_check_client(struct doctor *doctor)
{
        static struct error last; /* outlives the client, which may be leaked */
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t err;
        struct error error;

        if (doctor->config->embedded)
                return;
        doctor_begin(doctor, "client", "%s", "");
        doctor->client =
            client_new(RD_KAFKA_PRODUCER, doctor->config, NULL, NULL, set_callbacks, &last, &error);
        if (doctor->client == NULL) {
                doctor_fail(doctor, EX_CONFIG, "%s", error.text);
                doctor_remedy(doctor, "correct [kafka] of %s", doctor->file);
                return;
        }
        err = rd_kafka_metadata(doctor->client, 0, NULL, &metadata, KAFKA_ACCESS_TIMEOUT_MS);
        (void)rd_kafka_poll(doctor->client, 0);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                report_client(doctor, err, &last);
                return;
        }
        doctor->reaches_kafka = 1;
        doctor->n_brokers = metadata->broker_cnt;
        doctor_pass(doctor, "librdkafka %s connects; %d broker%s", rd_kafka_version_str(),
                    metadata->broker_cnt, metadata->broker_cnt == 1 ? "" : "s");
        rd_kafka_metadata_destroy(metadata);
}

/* Whether bootstrap.servers names a broker. */
struct search {
        const struct doctor_broker *wanted;
        int is_found;
};

static void
compare_broker(const struct doctor_broker *broker, void *arg)
{
        struct search *search = arg;

        search->is_found |= strcmp(broker->host, search->wanted->host) == 0 &&
                            strcmp(broker->port, search->wanted->port) == 0;
}

void
doctor_check_advertised(struct doctor *doctor)
{
        const struct rd_kafka_metadata *metadata;

        if (doctor->client == NULL ||
            rd_kafka_metadata(doctor->client, 0, NULL, &metadata, KAFKA_ACCESS_TIMEOUT_MS) !=
                RD_KAFKA_RESP_ERR_NO_ERROR)
                return;
        for (int i = 0; i < metadata->broker_cnt; i++) {
                const struct rd_kafka_metadata_broker *each = &metadata->brokers[i];
                struct doctor_broker broker = {.id = each->id};
                struct search search = {&broker, 0};

                (void)snprintf(broker.host, sizeof(broker.host), "%s", each->host);
                (void)snprintf(broker.port, sizeof(broker.port), "%d", each->port);
                for_each_broker(doctor->config, compare_broker, &search);
                if (!search.is_found)
                        (void)doctor_broker_check(doctor, &broker);
        }
        rd_kafka_metadata_destroy(metadata);
}

enum range_result
doctor_kafka_why(const struct offsets *offsets)
{
        return offsets != NULL && offsets_is_denied(offsets) ? RANGE_DENIED : RANGE_AWAY;
}

void
doctor_kafka_report(struct doctor *doctor, enum range_result why, const struct error *error)
{
        if (why == RANGE_DENIED || why == RANGE_DELETED) {
                doctor_skip(doctor, "not verified: %s", error->text);
                return;
        }
        doctor_fail_as(doctor, EX_UNAVAILABLE, error->text);
        doctor_remedy(doctor,
                      "the steps above have reached Kafka: see whether its brokers still run, by their "
                      "logs, and run it again");
}

void
doctor_kafka_close(struct doctor *doctor)
{
        if (doctor->client != NULL)
                (void)client_destroy_within(doctor->client, DESTROY_S);
        broker_dialer_free(doctor->dialer);
        free(doctor->usable);
}
