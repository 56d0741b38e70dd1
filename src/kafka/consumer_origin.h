#ifndef KAFKA_CONSUMER_ORIGIN_H
#define KAFKA_CONSUMER_ORIGIN_H

#include <stdatomic.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

/*
 * The log that a record was read from. While the origin stays the same, so does the log: it can be truncated
 * only when another broker becomes the leader, or when the leader restarts, and is another one only when the
 * topic was deleted and recreated. The origin also changes when the log does not: with each leader, with each
 * new connection, when a fetch fails, and when the consumer was not polled, or has not fetched from the
 * broker, for seconds. It does not include the leader epoch: a record carries the epoch under which it was
 * appended, which differs within one log; and librdkafka from 2.1 on, which exposes the epoch, detects
 * truncation with it by itself.
 */
struct consumer_origin {
        int is_known;
        uint32_t consumer; /* number of the consumer in this process */
        int32_t broker;
        /* Number of the consumer's connections to that broker, pauses and errors, when it was polled, */
        uint32_t connection;
        /* and of the first ones over which it may have been fetched, when partitions were assigned. */
        uint32_t earliest;
};

/* Whether two records come from the same log, as far as known. An unknown origin equals every other. */
int consumer_origin_is(const struct consumer_origin *origin, const struct consumer_origin *other);

/* Whether the record can have been fetched over one connection only. */
int consumer_origin_is_certain(const struct consumer_origin *origin);

/* Brokers whose ids are equal modulo this number share a counter, which is harmless. */
#define CONSUMER_ORIGIN_BROKERS 1024

/* What a consumer knows about the origins of its records. */
struct consumer_origins {
        uint32_t number; /* of the consumer among this process's */
        /* By broker id: number of connections so far, and of pauses between fetches over one; */
        _Atomic uint32_t connections[CONSUMER_ORIGIN_BROKERS];
        /* when one was answered, by clock_boot_ms(); 0: one is under way, or none since the assignment; */
        _Atomic int64_t fetched_ms[CONSUMER_ORIGIN_BROKERS];
        /* connections, or 1, and n_doubts at the assignment. */
        uint32_t assigned_at[CONSUMER_ORIGIN_BROKERS];
        _Atomic uint32_t n_doubts; /* what counts as a new connection to each broker */
        int64_t polled_ms;         /* by clock_boot_ms(); 0: never */
        /* By clock_boot_ms(): when metadata was last requested, and when for the regular refresh. */
        _Atomic int64_t asked_ms, refreshed_ms;
};

/*
 * The consumer's properties topic.metadata.refresh.interval.ms, by which regular requests for metadata are
 * known, and which is long because a fetch may fail at that moment; metadata.max.age.ms, three times as long,
 * as by default; and topic.metadata.refresh.fast.interval.ms: after the error of a fetch, metadata is
 * requested before the next fetch (fetch.error.backoff.ms). librdkafka 2.0.2 has microseconds of the first
 * two in 32 bits: more than 35 minutes would be none.
 */
#define CONSUMER_ORIGIN_REFRESH_MS "600000"
#define CONSUMER_ORIGIN_MAX_AGE_MS "1800000"
#define CONSUMER_ORIGIN_FAST_REFRESH_MS "10"

/* Before the client is created. */
void consumer_origins_init(struct consumer_origins *origins);

/* Watch the requests of a client: from its interceptor on_new, before it has any connection. */
rd_kafka_resp_err_t consumer_origins_watch(struct consumer_origins *origins, rd_kafka_t *client);

/* The consumer is about to poll, or has polled. */
void consumer_origins_polled(struct consumer_origins *origins);

/* Partitions are about to be assigned. */
void consumer_origins_assigned(struct consumer_origins *origins);

struct consumer_origin consumer_origins_of(const struct consumer_origins *origins, int32_t broker);
int consumer_origins_is_current(const struct consumer_origins *origins, const struct consumer_origin *origin);

#endif
