#ifndef KAFKA_STATISTICS_H
#define KAFKA_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define STATISTICS_BROKERS_MAX 64
#define STATISTICS_NAME_SIZE 128

/* A broker as a client sees it. */
struct broker {
        char name[STATISTICS_NAME_SIZE]; /* host:port/id */
        int is_up;                       /* connected and authenticated */
        uint64_t rtt_us;                 /* last measured round trip of a request; 0: not measured */
};

/* The brokers that a client knows; of a larger cluster the first STATISTICS_BROKERS_MAX. A plain value. */
struct brokers {
        struct broker items[STATISTICS_BROKERS_MAX];
        size_t n;
};

/* Counts since the client was made, and the present length of its queues. A plain value. */
struct statistics_totals {
        uint64_t requests;       /* sent to brokers */
        uint64_t errors;         /* of sending and receiving */
        uint64_t timeouts;       /* requests that were not answered in time */
        uint64_t retries;        /* requests that were sent again */
        uint64_t queued_records; /* waiting to be sent, or fetched and waiting to be polled */
        uint64_t queued_bytes;
};

struct statistics {
        struct brokers brokers;
        struct statistics_totals totals;
        int has_producer_id; /* of an idempotent producer */
};

/**
 * statistics_read(statistics, text, len):
 * Parse librdkafka's statistics, a JSON text. The brokers are the cluster's, and the bootstrap.servers that
 * cannot be reached (the others are brokers of the cluster, under the same name or another). librdkafka's
 * round trips are not taken: they begin when its thread runs again after sending, which on a busy machine is
 * after the answer has come. Returns 0; or -1, with empty statistics, when memory fails or the text is not
 * such JSON.
 */
int statistics_read(struct statistics *statistics, const char *text, size_t len) MUST_CHECK;

/* Take over the round trips of the brokers that are still connected. */
void statistics_keep_rtt(struct brokers *now, const struct brokers *before);

#endif
