#ifndef KAFKA_MESSAGE_H
#define KAFKA_MESSAGE_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "model/digest.h"
#include "model/record.h"

/* Where in `deliveries` a message was, and when it was appended. */
struct message_origin {
        int32_t partition;
        int64_t offset;
        int64_t timestamp_ms;
};

/* Zeros are an empty list; free(items) ends it. */
struct message_origins {
        struct message_origin *items;
        size_t n;
        size_t size;
};

/* Returns 0, or -1 when memory fails. */
int message_origins_add(struct message_origins *list, const struct message_origin *origin) MUST_CHECK;

/* Return the record's timestamp, in milliseconds since the epoch; 0 if it has none. */
int64_t message_timestamp_ms(const rd_kafka_message_t *message);

/* Convert a message of `deliveries` to a record of the model; its spans point into the message. */
void message_record(const rd_kafka_message_t *message, struct record *record);

/*
 * Return the value of the last header of this name, which points into the message; data is NULL if there is
 * none.
 */
struct span message_header(const rd_kafka_message_t *message, const char *name);

/*
 * Return whether a record of `quarantine` is the marker of a release: it names the released record, and has
 * neither a value nor a reason.
 */
int message_is_marker(const rd_kafka_message_t *message);

/*
 * Return the partition, of n, for a record with this key: murmur2 as in Java, which all writers of Gatepost
 * use.
 */
int32_t message_partition(struct span key, int32_t n);

/* Add all headers to a fingerprint, with digest_header(). Returns 0, or -1 when OpenSSL fails. */
int message_digest_headers(const rd_kafka_message_t *message, struct digest *digest) MUST_CHECK;

#endif
