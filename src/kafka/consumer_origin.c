#include "kafka/consumer_origin.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define API_FETCH 1
#define API_METADATA 3
#define API_API_VERSIONS 18
#define COORDINATOR "GroupCoordinator" /* name of connections that carry no records */
#define PAUSE_MS 4000 /* shorter than brokers need to replace a leader: broker.session.timeout.ms is 9 s */
#define REFRESH_EARLY_MS 1000
#define UNASKED_MS 2000 /* less often than librdkafka asks while a partition has no leader */

void
consumer_origins_init(struct consumer_origins *origins)
{
        static _Atomic uint32_t n_consumers;

        *origins = (struct consumer_origins){.number = atomic_fetch_add(&n_consumers, 1)};
        atomic_store(&origins->asked_ms, clock_boot_ms());
        atomic_store(&origins->refreshed_ms, clock_boot_ms());
}

/*
 * Whether a request for metadata follows from the error of a fetch: the topic was deleted, and may be another
 * one when it can be fetched again; or another broker leads. Other requests are made at the start, after an
 * assignment, by the regular refresh, and again and again while a partition has no leader.
 */
static int
follows_error(struct consumer_origins *origins)
{
        int64_t now_ms = clock_boot_ms();
        int was_asked = now_ms - atomic_exchange(&origins->asked_ms, now_ms) < UNASKED_MS;
        int is_refresh = now_ms - atomic_load(&origins->refreshed_ms) >=
                         atoi(CONSUMER_ORIGIN_REFRESH_MS) - REFRESH_EARLY_MS;

        if (is_refresh)
                atomic_store(&origins->refreshed_ms, now_ms);
        return !was_asked && !is_refresh;
}

/*
 * An interceptor, called by librdkafka's threads for each request. The first request on a connection is
 * ApiVersions; but the connection to a bootstrap server becomes that of a broker once the broker's id is
 * known. When enough records are queued, nothing is fetched, and the log may have changed meanwhile; see
 * consumer_origins_polled().
 */
static rd_kafka_resp_err_t
on_request(rd_kafka_t *client, int fd, const char *name, int32_t broker, int16_t api, int16_t version,
           int32_t correlation, size_t size, void *opaque)
{
        struct consumer_origins *origins = opaque;
        uint32_t i = (uint32_t)broker % CONSUMER_ORIGIN_BROKERS;
        int64_t fetched_ms = api == API_FETCH ? atomic_exchange(&origins->fetched_ms[i], 0) : 0;
        int is_pause = fetched_ms != 0 && clock_boot_ms() - fetched_ms >= PAUSE_MS;

        (void)client, (void)fd, (void)version, (void)correlation, (void)size;
        if (api == API_METADATA && follows_error(origins))
                (void)atomic_fetch_add(&origins->n_doubts, 1);
        if (strcmp(name, COORDINATOR) != 0 &&
            (api == API_API_VERSIONS || is_pause || atomic_load(&origins->connections[i]) == 0))
                (void)atomic_fetch_add(&origins->connections[i], 1);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Another, called for each response before it is parsed. */
static rd_kafka_resp_err_t
on_response(rd_kafka_t *client, int fd, const char *name, int32_t broker, int16_t api, int16_t version,
            int32_t correlation, size_t size, int64_t rtt, rd_kafka_resp_err_t err, void *opaque)
{
        struct consumer_origins *origins = opaque;

        (void)client, (void)fd, (void)name, (void)version, (void)correlation, (void)size, (void)rtt,
            (void)err;
        if (api == API_FETCH)
                atomic_store(&origins->fetched_ms[(uint32_t)broker % CONSUMER_ORIGIN_BROKERS],
                             clock_boot_ms());
        return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t
consumer_origins_watch(struct consumer_origins *origins, rd_kafka_t *client)
{
        (void)rd_kafka_interceptor_add_on_response_received(client, "gatepost", on_response, origins);
        return rd_kafka_interceptor_add_on_request_sent(client, "gatepost", on_request, origins);
}

/*
 * While the process was stopped or the machine suspended, the leader may have changed and changed back, and
 * the log may have been cut off, without a new connection. librdkafka before 2.1 does not notice that. So a
 * pause counts as a new connection to each broker. So does one in which nothing was fetched from a broker.
 */
void
consumer_origins_polled(struct consumer_origins *origins)
{
        int64_t now_ms = clock_boot_ms();

        if (origins->polled_ms != 0 && now_ms - origins->polled_ms >= PAUSE_MS)
                (void)atomic_fetch_add(&origins->n_doubts, 1);
        origins->polled_ms = now_ms;
}

void
consumer_origins_assigned(struct consumer_origins *origins)
{
        uint32_t n_doubts;

        atomic_store(&origins->asked_ms, clock_boot_ms());
        consumer_origins_polled(origins);
        n_doubts = atomic_load(&origins->n_doubts);
        for (size_t i = 0; i < CONSUMER_ORIGIN_BROKERS; i++) {
                uint32_t n;

                atomic_store(&origins->fetched_ms[i], 0);
                n = atomic_load(&origins->connections[i]);
                origins->assigned_at[i] = (n == 0 ? 1 : n) + n_doubts;
        }
}

/* Return the number of the connection over which a broker would be read from now. */
static uint32_t
connection_now(const struct consumer_origins *origins, int32_t broker)
{
        return atomic_load(&origins->connections[(uint32_t)broker % CONSUMER_ORIGIN_BROKERS]) +
               atomic_load(&origins->n_doubts);
}

struct consumer_origin
consumer_origins_of(const struct consumer_origins *origins, int32_t broker)
{
        return (struct consumer_origin){1, origins->number, broker, connection_now(origins, broker),
                                        origins->assigned_at[(uint32_t)broker % CONSUMER_ORIGIN_BROKERS]};
}

int
consumer_origins_is_current(const struct consumer_origins *origins, const struct consumer_origin *origin)
{
        return !origin->is_known || (origin->consumer == origins->number &&
                                     origin->connection == connection_now(origins, origin->broker));
}

int
consumer_origin_is(const struct consumer_origin *origin, const struct consumer_origin *other)
{
        return !origin->is_known || !other->is_known ||
               (origin->consumer == other->consumer && origin->broker == other->broker &&
                origin->connection == other->connection);
}

int
consumer_origin_is_certain(const struct consumer_origin *origin)
{
        return origin->connection == origin->earliest;
}
