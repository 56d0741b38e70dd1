#include "config/kafka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "config/secrets.h"

/* What Gatepost sets itself, and why a configuration may not. Aliases of librdkafka too. */
static const struct {
        const char *name;
        const char *reason;
} refused[] = {
    {"acks", "a delivery is answered 200 when all in-sync replicas have it"},
    {"request.required.acks", "a delivery is answered 200 when all in-sync replicas have it"},
    {"enable.idempotence", "without it a record could be there twice"},
    {"enable.gapless.guarantee", "it turns a time-out into a failure of the whole producer"},
    {"max.in.flight", "idempotence sets it"},
    {"max.in.flight.requests.per.connection", "idempotence sets it"},
    {"partitioner", "copies of a delivery meet in one partition only when all choose it alike"},
    {"message.max.bytes", "it follows max_body"},
    {"message.timeout.ms", "it follows ack_timeout"},
    {"delivery.timeout.ms", "it follows ack_timeout"},
    {"enable.auto.commit", "offsets are committed with the events, in one transaction"},
    {"auto.commit.enable", "offsets are committed with the events, in one transaction"},
    {"enable.auto.offset.store", "offsets are committed with the events, in one transaction"},
    {"auto.offset.reset", "the router must not skip or repeat records unnoticed"},
    {"isolation.level", "aborted records must not be seen"},
    {"transactional.id", "it follows prefix and instance"},
    {"group.id", "it follows prefix"},
    {"group.instance.id", "it is `instance`, in [gatepost]"},
    {"partition.assignment.strategy", "the router gives up all partitions at once"},
    {"allow.auto.create.topics", "topics are made with the right settings: gatepost topics create"},
    {"delivery.report.only.error", "a delivery is answered when its report comes"},
    {"enabled_events", "a delivery is answered when its report comes"},
    {"statistics.interval.ms", "readiness is read from the statistics"},
    {"offset.store.method", "offsets are committed with the events, in one transaction"},
    {"group.protocol", "the router gives up all partitions at once"},
    {"group.protocol.type", "the router gives up all partitions at once"},
    {"plugin.library.paths", "no foreign code in this process"},
    {"interceptors", "no foreign code in this process"},
};

static const char *const secret_names[] = {
    "sasl.password", "ssl.key.password",        "ssl.keystore.password",
    "ssl.key.pem",   "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret",
};

int
kafka_is_secret(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(secret_names); i++) {
                if (strcmp(name, secret_names[i]) == 0)
                        return 1;
        }
        return 0;
}

static int
check_refused(const char *name, struct error *error)
{
        if (strncmp(name, "test.mock.", 10) == 0)
                return error_set(error, "may not be set: a mock broker keeps no promise; see `embedded`");
        for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
                if (strcmp(name, refused[i].name) == 0)
                        return error_set(error, "may not be set: %s", refused[i].reason);
        }
        return 0;
}

/*
 * Cut the names out of librdkafka's documentation of its properties, `name | ... ` a line. It has what
 * rd_kafka_conf_dump() leaves out: the aliases, bootstrap.servers among them. Returns how many; the caller frees the list.
 */
static size_t
cut_names(char *documentation, const char ***names)
{
        char *save = NULL;
        size_t n = 0;

        *names = NULL;
        for (char *line = strtok_r(documentation, "\n", &save); line != NULL;
             line = strtok_r(NULL, "\n", &save)) {
                size_t len = strcspn(line, " ");

                if (len == 0 || strspn(line + len, " ") == 0 || line[len + strspn(line + len, " ")] != '|')
                        continue;
                line[len] = '\0';
                *names = mem_resize(*names, n + 1, sizeof(**names));
                (*names)[n++] = line;
        }
        return n;
}

static int
unknown(const char *name, struct error *error)
{
        char *documentation = NULL;
        size_t len, n;
        FILE *out = open_memstream(&documentation, &len);
        const char **names, *closest;

        if (out == NULL)
                return error_set(error, "librdkafka has no such property");
        rd_kafka_conf_properties_show(out);
        (void)fclose(out);
        n = cut_names(documentation, &names);
        closest = suggest_closest(name, names, n);
        (void)error_set(error, "librdkafka has no such property%s%s%s",
                        closest == NULL ? "" : "; did you mean ", closest == NULL ? "" : closest,
                        closest == NULL ? "" : "?");
        free(names);
        free(documentation);
        return -1;
}

/* Whether librdkafka takes it. Its reason quotes the value, so that must not be a secret. */
static int
check_property(const char *name, const char *value, struct error *error)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char reason[256];
        rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, name, value, reason, sizeof(reason));

        rd_kafka_conf_destroy(conf);
        if (result == RD_KAFKA_CONF_OK)
                return 0;
        if (result == RD_KAFKA_CONF_UNKNOWN)
                return unknown(name, error);
        reason[strcspn(reason, "\n")] = '\0'; /* some of its reasons end with one */
        return error_set(error, "%s", reason);
}

/* Files that librdkafka reads when a client is made. It does not say which one was not there, nor looks at its mode. */
static int
check_file(const char *name, const char *value, struct error *error)
{
        static const char *const files[] = {"ssl.ca.location", "ssl.certificate.location", "ssl.crl.location",
                                            "ssl.key.location", "ssl.keystore.location"};
        size_t i = 0;

        while (i < ARRAY_LEN(files) && strcmp(name, files[i]) != 0)
                i++;
        if (i == ARRAY_LEN(files) || strcmp(value, "probe") == 0)
                return 0;
        if (strcmp(name, "ssl.key.location") == 0 || strcmp(name, "ssl.keystore.location") == 0)
                return secrets_check_file(value, error);
        if (access(value, F_OK) != 0)
                return error_set(error, "%s cannot be opened: %s", value, strerror(errno));
        return 0;
}

static int
is_set(const struct config *config, const char *name)
{
        for (size_t i = 0; i < config->n_kafka; i++) {
                if (strcmp(config->kafka[i].name, name) == 0)
                        return 1;
        }
        return config->embedded && strcmp(name, "bootstrap.servers") == 0;
}

static int
add(struct config *config, const char *name, const char *value, struct error *error)
{
        if (is_set(config, name))
                return error_set(error, "it is set already, by its other name; remove one");
        if (check_property(name, kafka_is_secret(name) ? "a secret" : value, error) != 0 ||
            check_file(name, value, error) != 0)
                return -1;
        config->kafka = mem_resize(config->kafka, config->n_kafka + 1, sizeof(struct config_property));
        config->kafka[config->n_kafka++] =
            (struct config_property){mem_strdup(name), mem_strdup(value), kafka_is_secret(name)};
        return 0;
}

/* sasl.password_file and the like. Returns 1 when the name was one, -1 with the reason when it failed, else 0. */
static int
set_from_file(struct config *config, const char *name, const char *path, struct error *error)
{
        size_t len = strlen(name), secret_len;
        char *property, *secret;
        int result;

        if (len <= 5 || strcmp(name + len - 5, "_file") != 0)
                return 0;
        property = mem_strndup(name, len - 5);
        if (!kafka_is_secret(property)) {
                free(property);
                return 0;
        }
        secret = secrets_read(path, 1, &secret_len, error);
        result = secret == NULL || add(config, property, secret, error) != 0 ? -1 : 1;
        secrets_free(secret, secret == NULL ? 0 : secret_len);
        free(property);
        return result;
}

int
kafka_set(struct config *config, const char *name, const char *value, struct error *error)
{
        int from_file = set_from_file(config, name, value, error);

        if (from_file != 0)
                return from_file > 0 ? 0 : -1;
        if (check_refused(name, error) != 0)
                return -1;
        if (*value == '\0')
                return error_set(error, "the value is missing");
        if (kafka_is_secret(name) && secrets_check_file(config->file, error) != 0)
                return -1;
        if (strcmp(name, "metadata.broker.list") == 0)
                name = "bootstrap.servers";
        if (strcmp(name, "bootstrap.servers") == 0 && strcmp(value, "embedded") == 0) {
                config->embedded = 1;
                return 0;
        }
        return add(config, name, value, error);
}
