#ifndef KAFKA_STATISTICS_H
#define KAFKA_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "kafka/brokers.h"

/* What a client has done since it was made, and what it holds. A plain value. */
struct statistics_totals {
        uint64_t requests;       /* sent to brokers */
        uint64_t errors;         /* of sending and receiving */
        uint64_t timeouts;       /* requests that were not answered in time */
        uint64_t retries;        /* requests sent once more */
        uint64_t queued_records; /* to be sent, or fetched and not taken yet */
        uint64_t queued_bytes;
};

struct statistics {
        struct brokers brokers;
        struct statistics_totals totals;
};

/**
 * statistics_read(statistics, text, len):
 * Read librdkafka's statistics, a JSON text. The brokers are those of the cluster, and those of bootstrap.servers that
 * cannot be reached (the others are of the cluster, too, by this name or another). Returns 0; or -1, with nothing, when
 * memory fails or that is no such text.
 */
int statistics_read(struct statistics *statistics, const char *text, size_t len) MUST_CHECK;

#endif
