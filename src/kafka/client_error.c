#include "kafka/client_error.h"

#include <stdio.h>
#include <string.h>

#include "kafka/outage.h"

/*
 * librdkafka before 2.6.1 repeats its own nonce in SCRAM's final message, against RFC 5802. Kafka 4 answers
 * as to a wrong password; earlier brokers did not check.
 */
static int
may_lack_scram(const rd_kafka_t *client)
{
        char mechanism[32];
        size_t size = sizeof(mechanism);

        return client != NULL && rd_kafka_version() < 0x02060100 &&
               rd_kafka_conf_get(rd_kafka_conf((rd_kafka_t *)(uintptr_t)client), "sasl.mechanism", mechanism,
                                 &size) == RD_KAFKA_CONF_OK &&
               strncmp(mechanism, "SCRAM-", 6) == 0;
}

/* What to check when librdkafka reports this. */
struct known_cause {
        const char *part; /* of its message */
        const char *remedy;
        enum { NO_ADVICE, PART_IS_ADVICE, ADVICE_AFTER_PART } advice; /* which misses half of the causes */
};

static const struct known_cause *
find_known(const char *reason)
{
        static const struct known_cause known[] = {
            {"certificate verify failed", "wrong ssl.ca.location, or the certificate has another name",
             ADVICE_AFTER_PART},
            {"SSL handshake failed: error:0A000126:", "the port has no TLS, or wants a client certificate",
             ADVICE_AFTER_PART},
            {"wrong version number", "the port has no TLS: check security.protocol", ADVICE_AFTER_PART},
            {": might be caused by incorrect security.protocol",
             "the port may require TLS: check security.protocol; or the broker is stopping or limits "
             "connections",
             PART_IS_ADVICE},
            {"Unsupported SASL mechanism", "check sasl.mechanism", NO_ADVICE},
            {"not valid in current SASL state", "the port takes no logins: check security.protocol",
             NO_ADVICE},
            {"Invalid response size",
             "the port may not be Kafka's, or receive.message.max.bytes is too small", ADVICE_AFTER_PART},
        };

        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
                if (strstr(reason, known[i].part) != NULL)
                        return &known[i];
        }
        return NULL;
}

static const char *
explain_login(const rd_kafka_t *client)
{
        return may_lack_scram(client)
                   ? "wrong password, or Kafka 4, where librdkafka before 2.6.1 cannot log "
                     "in by SCRAM (gatepost-guide(7))"
                   : "wrong user name or password";
}

/* Write what to check, if that is known, and librdkafka's message. */
static void
describe(const rd_kafka_t *client, int code, const char *reason, char cause[OUTAGE_CAUSE_SIZE])
{
        const struct known_cause *known = find_known(reason);
        size_t len = strlen(reason);

        if (known != NULL && known->advice != NO_ADVICE)
                len = (size_t)(strstr(reason, known->part) - reason);
        if (known != NULL && known->advice == ADVICE_AFTER_PART)
                len += strlen(known->part);
        if (known != NULL)
                (void)snprintf(cause, OUTAGE_CAUSE_SIZE, "%s: %.*s", known->remedy, (int)len, reason);
        else if (code == RD_KAFKA_RESP_ERR__AUTHENTICATION)
                (void)snprintf(cause, OUTAGE_CAUSE_SIZE, "%s: %s", explain_login(client), reason);
        else
                (void)snprintf(cause, OUTAGE_CAUSE_SIZE, "%s", reason);
}

/*
 * Requests return their own errors. What remains to be reported is why no broker can be reached or
 * authenticates us. The event that all brokers are down has no cause; that came in the transport error before
 * it.
 */
void
client_error_log(const rd_kafka_t *client, int code, const char *reason)
{
        char cause[OUTAGE_CAUSE_SIZE];

        describe(client, code, reason, cause);
        switch (code) {
        case RD_KAFKA_RESP_ERR__TRANSPORT:
        case RD_KAFKA_RESP_ERR__BAD_MSG:
                outage_suspect(cause);
                break;
        case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
                outage_note(reason);
                break;
        case RD_KAFKA_RESP_ERR__AUTHENTICATION:
        case RD_KAFKA_RESP_ERR__SSL:
        case RD_KAFKA_RESP_ERR__RESOLVE:
                outage_explain(cause);
                break;
        default:
                break;
        }
}

static void
on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
        (void)opaque;
        client_error_log(rk, code, reason);
}

void
client_error_log_all(rd_kafka_conf_t *conf)
{
        rd_kafka_conf_set_error_cb(conf, on_error);
}

void
client_error_explain(rd_kafka_t *client, rd_kafka_resp_err_t err, struct error *error)
{
        const char *name = err == RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT ? "transaction.timeout.ms"
                           : err == RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT   ? "session.timeout.ms"
                                                                                : NULL;
        char value[24] = "";
        size_t size = sizeof(value);

        if (name == NULL)
                return;
        (void)rd_kafka_conf_get(rd_kafka_conf(client), name, value, &size);
        if (err == RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT)
                (void)error_set(
                    error, "%s is %s, above the brokers' transaction.max.timeout.ms; lower it in [kafka]",
                    name, value);
        else
                (void)error_set(error,
                                "%s is %s, outside the brokers' group.min.session.timeout.ms and "
                                "group.max.session.timeout.ms; change it in [kafka]",
                                name, value);
}

void
client_error_of_topic(const char *topic, rd_kafka_resp_err_t err, const char *text, struct error *error)
{
        if (err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
            err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
                (void)error_set(error, "topic %s is missing", topic);
        else
                (void)error_set(error, "%s: %s", topic, text);
}
