#include "config/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#include "base/mem.h"
#include "base/unit.h"
#include "config/kafka_properties.h"
#include "config/secrets.h"

#define BROKERS "metadata.broker.list" /* bootstrap.servers, by its own name */

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
/* librdkafka ignores what follows a number, such as a unit. */
static int
is_number(const char *value)
{
        char *end;

        (void)strtod(value, &end);
        return end != value && *end == '\0';
}

static int
check_property(const struct kafka_properties *properties, const char *name, const char *value,
               struct error *error)
{
        const char *range;
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char text[256];
        rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, name, value, text, sizeof(text));
        const char *reason = result == RD_KAFKA_CONF_OK ? kafka_property_changed(conf) : NULL;

        rd_kafka_conf_destroy(conf);
        if (reason != NULL)
                return refuse(reason, error);
        range = kafka_properties_range(properties, name);
        if (result == RD_KAFKA_CONF_OK && (strstr(range, " .. ") == NULL || is_number(value)))
                return 0;
        if (*range != '\0' && strstr(text, "not supported in this build") == NULL)
                return error_set(error, "'%.64s' is not possible; expected %.300s", value, range);
        text[strcspn(text, "\n")] = '\0'; /* some messages end with a newline */
        return error_set(error, "%s", text);
}

static int
ends_with(const char *text, const char *end)
{
        size_t len = strlen(text), end_len = strlen(end);

        return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static int
names_secret_file(const char *own_name)
{
        return ends_with(own_name, "key.location") || ends_with(own_name, "keystore.location") ||
               ends_with(own_name, "key.file") || ends_with(own_name, "assertion.file") ||
               ends_with(own_name, "keytab");
}

static int
names_file(const char *own_name, const char *value)
{
        return names_secret_file(own_name) ||
               ((ends_with(own_name, ".location") || ends_with(own_name, ".file")) &&
                strcmp(value, "probe") != 0);
}

/*
 * Check a file that librdkafka reads when it creates a client, and add it. librdkafka does not say which file
 * is missing or may not be read, does not check modes, and blocks on a FIFO.
 */
static int
add_file(struct config *config, const char *own_name, const char *path, struct error *error)
{
        struct stat st;

        if (names_secret_file(own_name)) {
                if (secrets_check_file(path, error) != 0)
                        return -1;
                if (stat(path, &st) == 0) /* which this account need not be allowed to do */
                        config_add_file(config, path, &st, 1);
                else if (*unit_remedy(path, errno) != '\0')
                        return error_set(error, "cannot open %s: %s%s", path, strerror(errno),
                                         unit_remedy(path, errno));
                return 0;
        }
        if (stat(path, &st) != 0 || eaccess(path, R_OK) != 0)
                return error_set(error, "cannot open %s: %s%s", path, strerror(errno),
                                 unit_remedy(path, errno));
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
                return error_set(error, "%s is neither a file nor a directory", path);
        config_add_file(config, path, &st, 1);
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
        if (check_property(properties, name, is_secret ? "a secret" : value, error) != 0 ||
            (names_file(own_name, value) && add_file(config, own_name, value, error) != 0))
                return -1;
        /* The rest of Gatepost looks for the brokers under their usual name. */
        if (strcmp(own_name, BROKERS) == 0)
                name = "bootstrap.servers";
        config->kafka = mem_resize(config->kafka, config->n_kafka + 1, sizeof(struct config_property));
        config->kafka[config->n_kafka++] =
            (struct config_property){mem_strdup(name), mem_strdup(value), is_secret, 0};
        return 0;
}

/* Set sasl.password_file and the like. Return 1, 0 for other names, or -1 with the reason. */
static int
set_from_file(struct config *config, const struct kafka_properties *properties, const char *name,
              const char *path, struct error *error)
{
        size_t secret_len;
        char *property, *secret;
        struct stat st;
        int result;

        if (!ends_with(name, "_file"))
                return 0;
        property = mem_strndup(name, strlen(name) - strlen("_file"));
        if (!kafka_property_is_secret(property)) {
                free(property);
                return 0;
        }
        secret = secrets_check_path(path, error) != 0 ? NULL : secrets_read(path, 1, &secret_len, &st, error);
        result = secret == NULL || add(config, properties, property, secret, error) != 0 ? -1 : 1;
        if (result == 1)
                config_add_file(config, path, &st, 1);
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
        if (kafka_property_is_secret(name) &&
            secrets_check_mode(config->files[0].st.st_mode, config->file, error) != 0)
                return -1;
        if (strcmp(own_name, BROKERS) == 0 && strcmp(value, "embedded") == 0) {
                if (is_set(config, properties, BROKERS))
                        return error_set(error, "already set by its other name; remove one");
                config->embedded = 1;
                return 0;
        }
        return add(config, properties, name, value, error);
}

int
kafka_values_set(struct config *config, const char *name, const char *value, struct error *error)
{
        struct kafka_properties *properties = kafka_properties_new();
        int result = set(config, properties, name, value, error);

        kafka_properties_free(properties);
        return result;
}
