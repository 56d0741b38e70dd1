#include "config/load.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#include "base/mem.h"
#include "config/kafka_properties.h"
#include "config/secrets.h"

static int
refuse(const char *reason, struct error *error)
{
        return error_set(error, "may not be set: %s", reason);
}

static int
ends_with(const char *text, const char *end)
{
        size_t len = strlen(text), end_len = strlen(end);

        return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* librdkafka ignores what follows a number, such as a unit. Return whether it does that here. */
static int
is_cut(rd_kafka_conf_t *conf, const char *name, const char *value)
{
        char read[64], *end;
        size_t size = sizeof(read);

        (void)strtod(value, &end);
        return isdigit((unsigned char)value[0]) && *end != '\0' &&
               rd_kafka_conf_get(conf, name, read, &size) == RD_KAFKA_CONF_OK &&
               read[strspn(read, "-.0123456789")] == '\0';
}

/*
 * Check that librdkafka accepts the property, and that it changes no refused property, by an alias. The
 * reason may quote the value, so the value must not be a secret.
 */
static int
check_property(const char *name, const char *value, struct error *error)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char text[160];
        rd_kafka_conf_res_t set = rd_kafka_conf_set(conf, name, value, text, sizeof(text));
        const char *refused = set == RD_KAFKA_CONF_OK ? kafka_property_changed(conf) : NULL;
        int result = 0;

        text[strcspn(text, "\n")] = '\0'; /* some messages end with a newline */
        if (refused != NULL)
                result = refuse(refused, error);
        else if (set == RD_KAFKA_CONF_UNKNOWN)
                result = error_set(error, "librdkafka has no such property");
        else if (set != RD_KAFKA_CONF_OK)
                result = error_set(error, "%s", text);
        else if (is_cut(conf, name, value))
                result = error_set(error, "'%.64s' is not a number without a unit", value);
        rd_kafka_conf_destroy(conf);
        return result;
}

/* Return whether librdkafka reads the file that a property names, and the file has a secret. */
static int
names_secret_file(const char *name)
{
        return ends_with(name, "key.location") || ends_with(name, "keystore.location") ||
               ends_with(name, "key.file") || ends_with(name, "assertion.file") || ends_with(name, "keytab");
}

static int
names_file(const char *name, const char *value)
{
        return names_secret_file(name) ||
               ((ends_with(name, ".location") || ends_with(name, ".file")) && strcmp(value, "probe") != 0);
}

/*
 * Check a file that librdkafka reads when it creates a client, and add it. librdkafka does not say which file
 * is missing or may not be read, does not check modes, and blocks on a FIFO.
 */
static int
add_file(struct config *config, const char *name, const char *path, struct error *error)
{
        struct stat st;

        if (names_secret_file(name) && secrets_check_file(path, error) != 0)
                return -1;
        if (stat(path, &st) != 0 || eaccess(path, R_OK) != 0)
                return error_set(error, "cannot open %s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
                return error_set(error, "%s is neither a file nor a directory", path);
        config_add_file(config, path, &st, 1);
        return 0;
}

static int
add(struct config *config, const char *name, const char *value, struct error *error)
{
        int is_secret = kafka_property_is_secret(name);

        if (config_property(config, name) != NULL ||
            (config->embedded && strcmp(name, "bootstrap.servers") == 0))
                return error_set(error, "already set, by itself or from a file");
        if (check_property(name, is_secret ? "a secret" : value, error) != 0 ||
            (names_file(name, value) && add_file(config, name, value, error) != 0))
                return -1;
        config->kafka = mem_resize(config->kafka, config->n_kafka + 1, sizeof(struct config_property));
        config->kafka[config->n_kafka++] =
            (struct config_property){mem_strdup(name), mem_strdup(value), is_secret};
        return 0;
}

/* Set sasl.password_file and the like. Return 1, 0 for other names, or -1 with the reason. */
static int
set_from_file(struct config *config, const char *name, const char *path, struct error *error)
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
        result = secret == NULL || add(config, property, secret, error) != 0 ? -1 : 1;
        if (result == 1)
                config_add_file(config, path, &st, 1);
        secrets_free(secret, secret == NULL ? 0 : secret_len);
        free(property);
        return result;
}

int
kafka_values_set(struct config *config, const char *name, const char *value, struct error *error)
{
        const char *refused = kafka_property_refused(name);
        int from_file;

        if (refused != NULL)
                return refuse(refused, error);
        if (strcmp(name, "metadata.broker.list") == 0)
                return error_set(error, "write bootstrap.servers instead");
        if (*value == '\0')
                return error_set(error, "the value is missing");
        from_file = set_from_file(config, name, value, error);
        if (from_file != 0)
                return from_file > 0 ? 0 : -1;
        if (kafka_property_is_secret(name) &&
            secrets_check_mode(config->files[0].st.st_mode, config->file, error) != 0)
                return -1;
        if (strcmp(name, "bootstrap.servers") == 0 && strchr(value, '@') != NULL)
                return error_set(error,
                                 "not HOST:PORT (not shown, since what is before an @ may be a password)");
        if (strcmp(name, "bootstrap.servers") == 0 && strcmp(value, "embedded") == 0) {
                config->embedded = 1;
                return 0;
        }
        return add(config, name, value, error);
}
