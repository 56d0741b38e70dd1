#include "kafka/fetch_ahead.h"

#include <stdlib.h>
#include <strings.h>

#define HAS_BACKOFF 0x02020000
#define LIMIT_KBYTES "8192"
#define LIMIT_KBYTES_SLOW "65536" /* must last for about the second after which librdkafka looks again */

#define WAKE_BYTES 262144
#define RECORD_BYTES 64 /* counted for each record, so that many small ones wake the threads, too */

static int
looks_by_itself(void)
{
        return rd_kafka_version() >= HAS_BACKOFF;
}

/* Without SASL, credentials have no effect. With Kerberos or OAUTHBEARER, none are set: leave it so. */
static int
has_settable_credentials(const struct config *config)
{
        const char *protocol = config_property(config, "security.protocol");

        return protocol == NULL || strncasecmp(protocol, "sasl_", 5) != 0 ||
               (config_property(config, "sasl.username") != NULL &&
                config_property(config, "sasl.password") != NULL);
}

const char *
fetch_ahead_limit(const struct config *config)
{
        return looks_by_itself() || has_settable_credentials(config) ? LIMIT_KBYTES : LIMIT_KBYTES_SLOW;
}

const char *
fetch_ahead_backoff(void)
{
        return looks_by_itself() ? "fetch.queue.backoff.ms" : NULL;
}

/* Return a quarter of a configured limit of the queue, or WAKE_BYTES if that is less. */
static size_t
quarter_of(const struct config *config, const char *name, size_t unit)
{
        const char *value = config_property(config, name);
        size_t n_bytes = value == NULL ? WAKE_BYTES : strtoul(value, NULL, 10) * unit / 4;

        return n_bytes < WAKE_BYTES ? n_bytes : WAKE_BYTES;
}

void
fetch_ahead_init(struct fetch_ahead *ahead, const struct config *config, rd_kafka_t *client)
{
        const char *username = config_property(config, "sasl.username");
        const char *password = config_property(config, "sasl.password");
        size_t by_bytes = quarter_of(config, "queued.max.messages.kbytes", 1024);
        size_t by_records = quarter_of(config, "queued.min.messages", RECORD_BYTES);

        *ahead = (struct fetch_ahead){
            .client = looks_by_itself() || !has_settable_credentials(config) ? NULL : client,
            .username = username == NULL ? "" : username,
            .password = password == NULL ? "" : password,
            .wake_bytes = by_bytes < by_records ? by_bytes : by_records,
        };
}

void
fetch_ahead_took(struct fetch_ahead *ahead, rd_kafka_message_t *const *messages, size_t n)
{
        for (size_t i = 0; i < n; i++)
                ahead->n_bytes += messages[i]->len + RECORD_BYTES;
        if (ahead->client == NULL || ahead->n_bytes < ahead->wake_bytes)
                return;
        ahead->n_bytes = 0;
        rd_kafka_error_destroy(
            rd_kafka_sasl_set_credentials(ahead->client, ahead->username, ahead->password));
}
