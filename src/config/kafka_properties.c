#include "config/kafka_properties.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/secrets.h"

#define BROKERS "metadata.broker.list" /* bootstrap.servers, by its own name */

#define ACKS "a delivery is answered 200 only when all in-sync replicas have it"
#define AFTER_ACK "a delivery is answered when its delivery report arrives"
#define ASSIGNMENT "the router relies on all partitions being revoked at once"
#define CODE "it loads foreign code into this process"
#define KINIT "Gatepost runs no commands, so no kinit; renew tickets outside"
#define OFFSETS "offsets are committed with the events, in one transaction"
#define QUEUE "max_in_flight in [receiver] bounds it; a smaller queue would reject large deliveries forever"
#define TIMEOUT "it is derived from ack_timeout"
#define VERSIONS "idempotence, transactions and headers depend on the versions that brokers report"

/*
 * Properties that Gatepost sets itself and properties that would break a guarantee, by librdkafka's own
 * names.
 */
static const struct {
        const char *name;
        const char *reason;
} refused[] = {
    {"request.required.acks", ACKS},
    {"enable.idempotence", "without it a record could be duplicated"},
    {"enable.gapless.guarantee", "it turns a timeout into a fatal error of the producer"},
    {"max.in.flight.requests.per.connection", "idempotence sets it"},
    {"message.send.max.retries", "a record is retried until ack_timeout expires"},
    {"queue.buffering.max.messages", QUEUE},
    {"queue.buffering.max.kbytes", QUEUE},
    {"queuing.strategy", "records stay in order"},
    {"partitioner", "deduplication needs all copies of a delivery in one partition"},
    {"message.max.bytes", "it is derived from max_body"},
    {"message.timeout.ms", TIMEOUT},
    {"enable.auto.commit", OFFSETS},
    {"auto.commit.enable", OFFSETS},
    {"enable.auto.offset.store", OFFSETS},
    {"offset.store.method", OFFSETS},
    {"auto.offset.reset", "the router must not skip or repeat records unnoticed"},
    {"isolation.level", "records of aborted transactions must not be read"},
    {"enable.partition.eof", "Gatepost sets it where it needs the end of a partition"},
    {"transactional.id", "it is derived from prefix and instance"},
    {"group.id", "it is derived from prefix"},
    {"group.instance.id", "it is `instance` in [gatepost]"},
    {"partition.assignment.strategy", ASSIGNMENT},
    {"group.protocol", ASSIGNMENT},
    {"group.protocol.type", ASSIGNMENT},
    {"group.remote.assignor", ASSIGNMENT},
    {"allow.auto.create.topics", "topics need the right settings; create them with: gatepost topics create"},
    {"topic.blacklist", "Gatepost must see its own topics; it reads no others"},
    {"delivery.report.only.error", AFTER_ACK},
    {"enabled_events", AFTER_ACK},
    {"statistics.interval.ms", "readiness depends on the statistics"},
    {"log.queue", "nothing reads the queue, which would grow without bound"},
    {"internal.termination.signal", "only the daemon handles signals"},
    {"api.version.request", VERSIONS},
    {"api.version.fallback.ms", VERSIONS},
    {"broker.version.fallback", VERSIONS},
    {"plugin.library.paths", CODE},
    {"interceptors", CODE},
    {"ssl.engine.location", CODE},
    {"ssl.engine.id", CODE},
    {"ssl.providers", CODE "; openssl.cnf(5) names providers for the whole system"},
    {"sasl.kerberos.kinit.cmd", KINIT},
    {"sasl.kerberos.min.time.before.relogin", KINIT},
};

struct name {
        const char *name;
        const char *own; /* the same, unless name is an alias */
};

struct kafka_properties {
        char *text; /* librdkafka's documentation, in which the names lie */
        struct name *names;
        size_t n;
};

/* Return the property that a line of the documentation calls itself an alias for, or NULL. Cuts the line. */
static const char *
alias_for(char *description)
{
        static const char before[] = "Alias for `";
        char *own = strstr(description, before);

        if (own == NULL)
                return NULL;
        own += strlen(before);
        own[strcspn(own, "`")] = '\0';
        return own;
}

/*
 * Read the names from the documentation, which has lines `name | C/P | range | default | importance |
 * description`.
 */
static void
cut_names(struct kafka_properties *properties)
{
        char *save = NULL;

        for (char *line = strtok_r(properties->text, "\n", &save); line != NULL;
             line = strtok_r(NULL, "\n", &save)) {
                size_t len = strcspn(line, " ");
                const char *own;

                if (!islower((unsigned char)*line) || line[len + strspn(line + len, " ")] != '|')
                        continue; /* a title */
                line[len] = '\0';
                own = alias_for(line + len + 1);
                properties->names =
                    mem_resize(properties->names, properties->n + 1, sizeof(*properties->names));
                properties->names[properties->n++] = (struct name){line, own == NULL ? line : own};
        }
}

/* rd_kafka_conf_dump() leaves aliases out; the documentation has them. */
struct kafka_properties *
kafka_properties_new(void)
{
        struct kafka_properties *properties = mem_alloc(sizeof(*properties));
        size_t len;
        FILE *out = open_memstream(&properties->text, &len);

        if (out == NULL)
                return properties;
        rd_kafka_conf_properties_show(out);
        (void)fclose(out);
        cut_names(properties);
        return properties;
}

void
kafka_properties_free(struct kafka_properties *properties)
{
        if (properties == NULL)
                return;
        free(properties->names);
        free(properties->text);
        free(properties);
}

static const char *
find(const struct kafka_properties *properties, const char *name)
{
        for (size_t i = 0; i < properties->n; i++) {
                if (strcmp(properties->names[i].name, name) == 0)
                        return properties->names[i].own;
        }
        return NULL;
}

const char *
kafka_properties_find(const struct kafka_properties *properties, const char *name)
{
        static const char prefix[] = "topic.";
        const char *own = find(properties, name);

        if (own == NULL && strncmp(name, prefix, strlen(prefix)) == 0)
                own = find(properties, name + strlen(prefix));
        return own;
}

const char *
kafka_properties_suggest(const struct kafka_properties *properties, const char *name)
{
        const char **names = mem_alloc(properties->n * sizeof(*names));
        const char *closest;

        for (size_t i = 0; i < properties->n; i++)
                names[i] = properties->names[i].name;
        closest = text_closest(name, names, properties->n);
        free(names);
        return closest;
}

const char *
kafka_property_refused(const char *name)
{
        if (strncmp(name, "test.mock.", 10) == 0)
                return "a mock broker guarantees nothing; see `embedded`";
        for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
                if (strcmp(name, refused[i].name) == 0)
                        return refused[i].reason;
        }
        return NULL;
}

/* Return whether the property has another value in conf than in a fresh one. */
static int
differs(rd_kafka_conf_t *conf, rd_kafka_conf_t *fresh, const char *name)
{
        char is[512], was[512];
        size_t is_size = sizeof(is), was_size = sizeof(was);

        return rd_kafka_conf_get(conf, name, is, &is_size) == RD_KAFKA_CONF_OK &&
               rd_kafka_conf_get(fresh, name, was, &was_size) == RD_KAFKA_CONF_OK && strcmp(is, was) != 0;
}

const char *
kafka_property_changed(rd_kafka_conf_t *conf)
{
        rd_kafka_conf_t *fresh = rd_kafka_conf_new();
        const char *reason = NULL;

        /* Topic properties exist only after the first has been set. */
        (void)rd_kafka_conf_set(fresh, "request.timeout.ms", "30000", NULL, 0);
        for (size_t i = 0; i < ARRAY_LEN(refused) && reason == NULL; i++) {
                if (differs(conf, fresh, refused[i].name))
                        reason = refused[i].reason;
        }
        rd_kafka_conf_destroy(fresh);
        return reason;
}

int
kafka_property_is_secret(const char *name)
{
        static const char *const ends[] = {"password",    "passphrase",        "secret",      "token",
                                           "key.pem",     "private.key",       "jaas.config", "ssl_key",
                                           "credentials", "oauthbearer.config"};
        size_t len = strlen(name);

        for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
                size_t end = strlen(ends[i]);

                if (len >= end && strcmp(name + len - end, ends[i]) == 0)
                        return 1;
        }
        return 0;
}

/*
 * Set the reason for an unknown property: librdkafka's own advice for properties of other clients, or a
 * suggestion.
 */
static int
unknown(const struct kafka_properties *properties, const char *name, struct error *error)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char advice[256];
        rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, name, "", advice, sizeof(advice));
        const char *closest = kafka_properties_suggest(properties, name);

        rd_kafka_conf_destroy(conf);
        if (result == RD_KAFKA_CONF_INVALID)
                return error_set(error, "%s", advice);
        return error_set(error, "librdkafka has no such property%s%s%s",
                         closest == NULL ? "" : "; did you mean ", closest == NULL ? "" : closest,
                         closest == NULL ? "" : "?");
}

static int
refuse(const char *reason, struct error *error)
{
        return error_set(error, "may not be set: %s", reason);
}

/*
 * Check that librdkafka accepts the property, and that it changes no refused property. The reason may quote
 * the value, so the value must not be a secret.
 */
static int
check_property(const char *name, const char *value, struct error *error)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char text[256];
        rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, name, value, text, sizeof(text));
        const char *reason = result == RD_KAFKA_CONF_OK ? kafka_property_changed(conf) : NULL;

        rd_kafka_conf_destroy(conf);
        if (reason != NULL)
                return refuse(reason, error);
        if (result == RD_KAFKA_CONF_OK)
                return 0;
        text[strcspn(text, "\n")] = '\0'; /* some messages end with a newline */
        return error_set(error, "%s", text);
}

static int
ends_with(const char *text, const char *end)
{
        size_t len = strlen(text), end_len = strlen(end);

        return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/*
 * Check a file that librdkafka reads when it creates a client. librdkafka does not say which file is missing,
 * does not check modes, and blocks on a FIFO.
 */
static int
check_file(const char *own_name, const char *path, struct error *error)
{
        struct stat st;

        if (ends_with(own_name, "key.location") || ends_with(own_name, "keystore.location") ||
            ends_with(own_name, "key.file") || ends_with(own_name, "assertion.file") ||
            ends_with(own_name, "keytab"))
                return secrets_check_file(path, error);
        if (!(ends_with(own_name, ".location") || ends_with(own_name, ".file")) || strcmp(path, "probe") == 0)
                return 0;
        if (stat(path, &st) != 0)
                return error_set(error, "cannot open %s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
                return error_set(error, "%s is neither a file nor a directory", path);
        return 0;
}

/* Return the property's own name, or NULL with the reason if it is unknown or refused. */
static const char *
own_name_of(const struct kafka_properties *properties, const char *name, struct error *error)
{
        const char *own = kafka_properties_find(properties, name);
        const char *reason = kafka_property_refused(own == NULL ? name : own);

        if (reason != NULL)
                (void)refuse(reason, error);
        else if (own == NULL)
                (void)unknown(properties, name, error);
        return reason == NULL ? own : NULL;
}

static int
is_set(const struct config *config, const struct kafka_properties *properties, const char *own_name)
{
        for (size_t i = 0; i < config->n_kafka; i++) {
                if (strcmp(kafka_properties_find(properties, config->kafka[i].name), own_name) == 0)
                        return 1;
        }
        return config->embedded && strcmp(own_name, BROKERS) == 0;
}

static int
add(struct config *config, const struct kafka_properties *properties, const char *name, const char *value,
    struct error *error)
{
        const char *own_name = own_name_of(properties, name, error);
        int is_secret;

        if (own_name == NULL)
                return -1;
        is_secret = kafka_property_is_secret(own_name) || kafka_property_is_secret(name);
        if (is_set(config, properties, own_name))
                return error_set(error, "already set by its other name; remove one");
        if (check_property(name, is_secret ? "a secret" : value, error) != 0 ||
            check_file(own_name, value, error) != 0)
                return -1;
        /* The rest of Gatepost looks for the brokers under their usual name. */
        if (strcmp(own_name, BROKERS) == 0)
                name = "bootstrap.servers";
        config->kafka = mem_resize(config->kafka, config->n_kafka + 1, sizeof(struct config_property));
        config->kafka[config->n_kafka++] =
            (struct config_property){mem_strdup(name), mem_strdup(value), is_secret};
        return 0;
}

/* Set sasl.password_file and the like. Return 1, 0 for other names, or -1 with the reason. */
static int
set_from_file(struct config *config, const struct kafka_properties *properties, const char *name,
              const char *path, struct error *error)
{
        size_t secret_len;
        char *property, *secret;
        int result;

        if (!ends_with(name, "_file"))
                return 0;
        property = mem_strndup(name, strlen(name) - strlen("_file"));
        if (!kafka_property_is_secret(property)) {
                free(property);
                return 0;
        }
        secret = secrets_check_path(path, error) != 0 ? NULL : secrets_read(path, 1, &secret_len, error);
        result = secret == NULL || add(config, properties, property, secret, error) != 0 ? -1 : 1;
        secrets_free(secret, secret == NULL ? 0 : secret_len);
        free(property);
        return result;
}

static int
set(struct config *config, const struct kafka_properties *properties, const char *name, const char *value,
    struct error *error)
{
        int from_file = set_from_file(config, properties, name, value, error);
        const char *own_name;

        if (from_file != 0)
                return from_file > 0 ? 0 : -1;
        own_name = own_name_of(properties, name, error);
        if (own_name == NULL)
                return -1;
        if (*value == '\0')
                return error_set(error, "the value is missing");
        if (kafka_property_is_secret(name) && secrets_check_mode(config->file_mode, config->file, error) != 0)
                return -1;
        if (strcmp(own_name, BROKERS) == 0 && strcmp(value, "embedded") == 0) {
                config->embedded = 1;
                return 0;
        }
        return add(config, properties, name, value, error);
}

int
kafka_properties_set(struct config *config, const char *name, const char *value, struct error *error)
{
        struct kafka_properties *properties = kafka_properties_new();
        int result = set(config, properties, name, value, error);

        kafka_properties_free(properties);
        return result;
}
