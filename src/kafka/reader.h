#ifndef KAFKA_READER_H
#define KAFKA_READER_H

#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Reads topics as a consumer does, read_committed, outside any group, and commits nothing. Partitions that are added are
 * read from their beginning. For one thread.
 */
struct reader;

/* Where to begin, instead of at a time. */
#define READER_FROM_BEGINNING INT64_MIN
#define READER_FROM_END INT64_MAX

/* What to read: all partitions of these topics. */
struct reader_wish {
        const char *const *topics;
        size_t n_topics;
        int64_t
            from_ms; /* its first record with this timestamp, in milliseconds since the epoch, or a later one */
        /*
         * Stop in each where a read_committed consumer would stop when it begins, before an open transaction. Where its leader does not
         * say so within a second, it is the first end that is met.
         */
        int stops_at_ends;
};

/* Returns NULL with the reason: Kafka cannot be reached, or a topic is missing. */
struct reader *reader_new(const struct config *config, const char *bootstrap, const struct reader_wish *wish,
                          int timeout_ms, struct error *error) MUST_CHECK;
void reader_free(struct reader *reader);

/* The next record within the time, or NULL; the caller destroys it. */
rd_kafka_message_t *reader_poll(struct reader *reader, int timeout_ms);

/* Whether every partition that there was has been read to where it stops. */
int reader_reached_ends(const struct reader *reader);

/*
 * What reader_poll() met that whoever shows the records must say, such as records that were deleted before they were read;
 * NULL when there is nothing. Valid until reader_poll() is called again.
 */
const char *reader_notice(const struct reader *reader);

/* Whether Kafka has not answered for a minute: nothing was read, and no end of a partition was met. */
int reader_is_stalled(const struct reader *reader);

/* Why nothing more can be read: it is not permitted, or a topic was deleted. NULL while it can. */
const char *reader_failure(const struct reader *reader, int *is_denied);

#endif
