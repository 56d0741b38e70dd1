#ifndef KAFKA_RANGE_H
#define KAFKA_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/* A part of a partition: the offsets from `from` up to but not including `to`. */
struct range {
        const char *topic;
        int32_t partition;
        int64_t from;
        int64_t to;
        /* For range_read() alone. */
        int is_done;
        int is_at_end; /* Kafka said after its last record that there is no more for now */
};

enum range_answer {
        RANGE_GO_ON,
        RANGE_ENOUGH, /* of this range */
        RANGE_FAIL,   /* the callee has filled the error */
};

/* A record of ranges[index]; it is the reader's, and gone when this returns. */
typedef enum range_answer range_record(const rd_kafka_message_t *message, size_t index, struct error *error,
                                       void *arg);

enum range_result {
        RANGE_DONE,
        RANGE_FAILED,           /* on_record said so, or the client cannot be made */
        RANGE_DENIED,           /* this account may not read a topic */
        RANGE_AWAY,             /* Kafka does not answer */
        RANGE_OPEN_TRANSACTION, /* one that began in a range has not ended */
        RANGE_DELETED,          /* records of a range are gone: retention was faster */
};

/**
 * range_read(config, bootstrap, ranges, n, on_record, arg, error):
 * Read n ranges, read_committed, as fast as it goes, at most one of each partition: the records of one come in their
 * order, those of different ones mixed. Transactions that are open are waited for as long as the router's may live. Blocks;
 * takes memory of a fixed size. On a result but RANGE_DONE error has the reason.
 */
enum range_result range_read(const struct config *config, const char *bootstrap, struct range *ranges,
                             size_t n, range_record *on_record, void *arg, struct error *error) MUST_CHECK;

/* What range_kept_since() says of a range. */
#define RANGE_KEPT_ALL INT64_MIN
#define RANGE_KEPT_NOTHING INT64_MAX

/**
 * range_first(config, bootstrap, ranges, n, first_ms, error):
 * Find out the timestamp of the first record of each of n ranges, RANGE_KEPT_NOTHING when there is none. Returns as range_read().
 */
enum range_result range_first(const struct config *config, const char *bootstrap, const struct range *ranges,
                              size_t n, int64_t *first_ms, struct error *error) MUST_CHECK;

/**
 * range_kept_since(config, bootstrap, ranges, n, since_ms, error):
 * Find out how far back each of n ranges, each from the first offset of its partition that is still there, tells what was
 * written: since_ms is the timestamp of its first record, RANGE_KEPT_ALL when nothing was deleted before it, or
 * RANGE_KEPT_NOTHING when all was. Returns as range_read().
 */
enum range_result range_kept_since(const struct config *config, const char *bootstrap,
                                   const struct range *ranges, size_t n, int64_t *since_ms,
                                   struct error *error) MUST_CHECK;

#endif
