#include "config/load.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "config/kafka_properties.h"

/*
 * Properties that librdkafka accepts one by one and that do not work together: it would log that again and
 * again, or try to connect for ever. Others it reports when a client is created (kafka/clients_check.c).
 */

/* All properties of the file, set: librdkafka knows them by all of their names. */
struct check {
        const struct config *config;
        const struct ini *ini;
        struct findings *findings;
        rd_kafka_conf_t *conf;
};

/* Return the value of a property, "" if it is not set and has no default. */
static const char *
value_of(const struct check *check, const char *name, char value[256])
{
        size_t size = 256;

        if (rd_kafka_conf_get(check->conf, name, value, &size) != RD_KAFKA_CONF_OK)
                *value = '\0';
        return value;
}

static double
number_of(const struct check *check, const char *name)
{
        char value[256];

        return strtod(value_of(check, name, value), NULL);
}

/* Return the line that sets a property by this name, or of the section. */
static size_t
line_of(const struct check *check, const char *name)
{
        size_t line = ini_line(check->ini, "kafka", "", name);

        return line != 0 ? line : ini_line(check->ini, "kafka", "", NULL);
}

/* Without a mechanism librdkafka uses GSSAPI, which takes no password. */
static void
check_sasl(const struct check *check)
{
        int has_password = config_property(check->config, "sasl.password") != NULL;
        char protocol[256], mechanism[256];

        if (!has_password)
                return;
        if (strncasecmp(value_of(check, "security.protocol", protocol), "sasl", 4) != 0)
                finding_set_remedy(load_error(check->findings, line_of(check, "sasl.username"),
                                              "sasl.password has no effect without security.protocol"),
                                   "security.protocol = SASL_SSL");
        else if (strcmp(value_of(check, "sasl.mechanisms", mechanism), "GSSAPI") == 0)
                finding_set_remedy(load_error(check->findings, line_of(check, "security.protocol"),
                                              "sasl.mechanism is GSSAPI, also by default, which takes no "
                                              "password"),
                                   "set sasl.mechanism to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512");
}

static void
check_linger(const struct check *check)
{
        uint64_t ack_ms = check->config->ack_timeout_ms;
        char ack[NUMBER_TEXT_SIZE];

        if ((check->config->roles & CONFIG_RECEIVER) && ack_ms != 0 &&
            number_of(check, "linger.ms") >= (double)ack_ms)
                load_error(check->findings, line_of(check, "linger.ms"),
                           "linger.ms: each delivery would be answered 503 after ack_timeout, %s",
                           number_format_duration(ack_ms, ack));
}

static void
check_session(const struct check *check)
{
        const char *session = config_property(check->config, "session.timeout.ms");
        double session_ms = strtod(session == NULL ? KAFKA_SESSION_TIMEOUT_MS : session, NULL);

        if (number_of(check, "heartbeat.interval.ms") >= session_ms)
                load_error(
                    check->findings,
                    line_of(check, session != NULL ? "session.timeout.ms" : "heartbeat.interval.ms"),
                    "heartbeat.interval.ms must be a third of session.timeout.ms or less, or the group "
                    "expels the router again and again");
}

static void
check_embedded(const struct check *check)
{
        size_t line = line_of(check, "bootstrap.servers");
        char protocol[256];

        if (strcasecmp(value_of(check, "security.protocol", protocol), "plaintext") != 0)
                load_error(check->findings, line, "the embedded broker speaks PLAINTEXT only");
        if (check->config->roles != (CONFIG_RECEIVER | CONFIG_ROUTER))
                load_error(check->findings, line,
                           "each gatepostd has an embedded broker of its own: set roles = receiver, router");
}

void
check_kafka(const struct config *config, const struct ini *ini, struct findings *findings)
{
        struct check check = {config, ini, findings, rd_kafka_conf_new()};

        for (size_t i = 0; i < config->n_kafka; i++)
                (void)rd_kafka_conf_set(check.conf, config->kafka[i].name,
                                        config->kafka[i].secret ? "a secret" : config->kafka[i].value, NULL,
                                        0);
        check_sasl(&check);
        check_linger(&check);
        if (config->roles & CONFIG_ROUTER)
                check_session(&check);
        if (config->embedded)
                check_embedded(&check);
        rd_kafka_conf_destroy(check.conf);
}
