#include "kafka/fetch_ahead.h"

#include <strings.h>

#define HAS_BACKOFF 0x02020000
#define LIMIT_KBYTES "8192"
#define LIMIT_KBYTES_SLOW "65536" /* must last for about the second after which librdkafka looks again */

/* A fraction of what fills the queue: LIMIT_KBYTES of bodies, or 100,000 records (queued.min.messages). */
#define WAKE_BYTES 262144
#define RECORD_BYTES 64

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

void
fetch_ahead_init(struct fetch_ahead *ahead, const struct config *config, rd_kafka_t *client)
{
        const char *username = config_property(config, "sasl.username");
        const char *password = config_property(config, "sasl.password");

        *ahead = (struct fetch_ahead){
            .client = looks_by_itself() || !has_settable_credentials(config) ? NULL : client,
            .username = username == NULL ? "" : username,
            .password = password == NULL ? "" : password,
        };
}

void
fetch_ahead_took(struct fetch_ahead *ahead, rd_kafka_message_t *const *messages, size_t n)
{
        for (size_t i = 0; i < n; i++)
                ahead->n_bytes += messages[i]->len + RECORD_BYTES;
        if (ahead->client == NULL || ahead->n_bytes < WAKE_BYTES)
                return;
        ahead->n_bytes = 0;
        rd_kafka_error_destroy(
            rd_kafka_sasl_set_credentials(ahead->client, ahead->username, ahead->password));
}
