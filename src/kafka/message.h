#ifndef KAFKA_MESSAGE_H
#define KAFKA_MESSAGE_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "model/digest.h"
#include "model/record.h"

/* Messages that were consumed and are owned by the list. Zeros are an empty list. */
struct message_list {
        rd_kafka_message_t **items;
        size_t n;
        size_t size;
};

/* Returns 0, or -1 when memory fails; then the message is not in the list. */
int message_list_add(struct message_list *list, rd_kafka_message_t *message) MUST_CHECK;

/* Destroy the messages, and keep the list for others. */
void message_list_clear(struct message_list *list);

void message_list_free(struct message_list *list);

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
 * Return the partition, of n, for a record with this key: murmur2 as in Java, which all writers of Gatepost
 * use.
 */
int32_t message_partition(struct span key, int32_t n);

/* Add all headers to a fingerprint, with digest_header(). Returns 0, or -1 when OpenSSL fails. */
int message_digest_headers(const rd_kafka_message_t *message, struct digest *digest) MUST_CHECK;

#endif
