#ifndef KAFKA_MESSAGE_H
#define KAFKA_MESSAGE_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "model/digest.h"
#include "model/record.h"

/* A message of `deliveries` as the model sees it; the spans are the message's. */
void message_record(const rd_kafka_message_t *message, struct record *record);

/* The value of the last header of this name; no data when there is none. It is the message's. */
struct span message_header(const rd_kafka_message_t *message, const char *name);

/* The partition, of n, that a record with this key goes to: murmur2, as Java's, by all who write for Gatepost. */
int32_t message_partition(struct span key, int32_t n);

/* Add all headers to a fingerprint that is being made: digest_header(). Returns 0, or -1 when OpenSSL fails. */
int message_digest_headers(const rd_kafka_message_t *message, struct digest *digest) MUST_CHECK;

#endif
