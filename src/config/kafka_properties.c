#include "config/kafka_properties.h"

#include <string.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"

#define ACKS "a delivery is answered 200 only when all in-sync replicas have it"
#define AFTER_ACK "a delivery is answered when its delivery report arrives"
#define ASSIGNMENT "the router relies on all partitions being revoked at once"
#define CODE "it loads foreign code into this process"
#define KINIT "Gatepost runs no commands, so no kinit"
#define OFFSETS "offsets are committed with the events, in one transaction"
#define QUEUE \
        "max_in_flight in [receiver] bounds it, and a smaller queue would reject large deliveries forever"
#define TIMEOUT "it is derived from ack_timeout"
#define VERSIONS "idempotence, transactions and headers depend on the versions that brokers report"

/*
 * Properties that Gatepost sets itself and properties that would break a guarantee.
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
    {"allow.auto.create.topics", "topics need the right settings, those of: gatepost topics create"},
    {"topic.blacklist", "Gatepost must see its own topics, and reads no others"},
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
    {"ssl.providers", CODE},
    {"sasl.kerberos.kinit.cmd", KINIT},
    {"sasl.kerberos.min.time.before.relogin", KINIT},
};

const char *
kafka_property_refused(const char *name)
{
        if (strncmp(name, "topic.", 6) == 0 && strcmp(name, "topic.blacklist") != 0)
                name += 6; /* librdkafka accepts this prefix for properties of topics */
        if (strncmp(name, "test.mock.", 10) == 0)
                return "a mock broker guarantees nothing";
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
