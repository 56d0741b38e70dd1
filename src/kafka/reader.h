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

/**
 * reader_new(config, bootstrap, topics, n, from_ms, timeout_ms, error):
 * Read all partitions of n topics, each from its beginning, its end, or the first record whose timestamp is from_ms, in
 * milliseconds since the epoch, or later. Returns NULL with the reason: Kafka cannot be reached, or a topic is missing.
 */
struct reader *reader_new(const struct config *config, const char *bootstrap, const char *const *topics,
                          size_t n, int64_t from_ms, int timeout_ms, struct error *error) MUST_CHECK;
void reader_free(struct reader *reader);

/* The next record within the time, or NULL; the caller destroys it. */
rd_kafka_message_t *reader_poll(struct reader *reader, int timeout_ms);

/*
 * Stop in each partition where a read_committed consumer would stop now, before an open transaction. Where its leader does not say
 * so within a second, it is the first end that is met.
 */
void reader_stop_at_ends(struct reader *reader);

/* Whether every partition has been read to where it stops. */
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
