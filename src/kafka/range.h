#ifndef KAFKA_RANGE_H
#define KAFKA_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/* A part of a partition: the offsets from `from` up to, but excluding, `to`. */
struct range {
        const char *topic;
        int32_t partition;
        int64_t from;
        int64_t to;
        /* Private to range_read(). */
        int is_done;
        int is_at_end; /* the end of the partition was reached after the last record */
};

enum range_answer {
        RANGE_GO_ON,
        RANGE_ENOUGH, /* stop reading this range */
        RANGE_FAIL,   /* the callee has set the error */
};

/* Process a record of ranges[index]; it is freed afterwards. */
typedef enum range_answer range_record(const rd_kafka_message_t *message, size_t index, struct error *error,
                                       void *arg);

enum range_result {
        RANGE_DONE,
        RANGE_FAILED,           /* on_record failed, or the client cannot be created */
        RANGE_DENIED,           /* this account may not read a topic */
        RANGE_AWAY,             /* Kafka does not answer */
        RANGE_OPEN_TRANSACTION, /* a transaction that began in a range has not ended */
        RANGE_DELETED,          /* records of a range were deleted by retention */
};

/**
 * range_read(config, bootstrap, ranges, n, on_record, arg, error):
 * Read n ranges, read_committed, at full speed, at most one range per partition: the records of one range
 * come in order, those of different ranges mixed. Waits for open transactions as long as the router's may
 * live. Blocks; uses constant memory. Except for RANGE_DONE, error has the reason.
 */
enum range_result range_read(const struct config *config, const char *bootstrap, struct range *ranges,
                             size_t n, range_record *on_record, void *arg, struct error *error) MUST_CHECK;

/* Since when a partition has its records: always; never, as of an empty range. */
#define RANGE_KEPT_ALL INT64_MIN
#define RANGE_KEPT_NOTHING INT64_MAX

/**
 * range_first(config, bootstrap, ranges, n, first_ms, error):
 * Find the timestamp of the first record of each of n ranges, RANGE_KEPT_NOTHING for an empty range. Returns
 * as range_read().
 */
enum range_result range_first(const struct config *config, const char *bootstrap, const struct range *ranges,
                              size_t n, int64_t *first_ms, struct error *error) MUST_CHECK;

#endif
