#ifndef KAFKA_READER_H
#define KAFKA_READER_H

#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Follows topics, read_committed, outside any group, and commits nothing. Partitions that are added are read
 * from their beginning. For one thread.
 */
struct reader;

/* Where to begin, instead of a time. */
#define READER_FROM_BEGINNING INT64_MIN
#define READER_FROM_END INT64_MAX

/* The partitions to read: all partitions of these topics. */
struct reader_wish {
        const char *const *topics;
        size_t n_topics;
        int64_t from_ms; /* begin at the first record of this time, in ms since the epoch, or later */
        /*
         * Stop in each partition at its end as of now for a read_committed consumer, which is before an open
         * transaction. If the leader does not report it within a second, stop at the first end reached.
         */
        int stops_at_ends;
};

/* Returns NULL with the reason: Kafka is unreachable, or a topic is missing. */
struct reader *reader_new(const struct config *config, const char *bootstrap, const struct reader_wish *wish,
                          int timeout_ms, struct error *error) MUST_CHECK;
void reader_free(struct reader *reader);

/* Return the next record, if one comes within the time, or NULL; the caller destroys it. */
rd_kafka_message_t *reader_poll(struct reader *reader, int timeout_ms);

/* Whether all partitions that existed at the beginning have been read to their end. */
int reader_reached_ends(const struct reader *reader);

/*
 * Return a notice to the user from the last reader_poll(), such as records that were deleted before they were
 * read, or NULL. Valid until the next reader_poll().
 */
const char *reader_notice(const struct reader *reader);

/* Whether Kafka has not answered for a minute: no record was read, and no end of a partition reached. */
int reader_is_stalled(const struct reader *reader);

/* Return why no more records can be read: a missing permission, or a deleted topic; NULL otherwise. */
const char *reader_failure(const struct reader *reader, int *is_denied);

#endif
