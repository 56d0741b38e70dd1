#ifndef KAFKA_WIRE_H
#define KAFKA_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/dial.h"
#include "base/error.h"

/*
 * Requests of Kafka's protocol over a connection of our own, in versions that brokers since 2.5 understand if
 * they have the request at all; but for one, they precede the compact encodings (KIP-482). librdkafka 2.0.2
 * has no such requests: it neither tells at which step of a connection it fails, nor which operations an
 * account is allowed (KIP-430). For diagnosis only.
 */

/* The keys of requests. */
enum wire_api {
        WIRE_METADATA = 3,
        WIRE_FIND_COORDINATOR = 10,
        WIRE_DESCRIBE_GROUPS = 15,
        WIRE_SASL_HANDSHAKE = 17,
        WIRE_API_VERSIONS = 18,
        WIRE_INIT_PRODUCER_ID = 22,
        WIRE_END_TXN = 26,
        WIRE_SASL_AUTHENTICATE = 36,
        WIRE_CONSUMER_GROUP_DESCRIBE = 69,
};

/* A request that is being written. */
struct wire_request {
        uint8_t *bytes;
        size_t len;
};

void wire_begin(struct wire_request *request, enum wire_api api, int version);
void wire_put(struct wire_request *request, int64_t value, size_t n_bytes);
/* A string, or null; and bytes. */
void wire_put_string(struct wire_request *request, const char *text);
void wire_put_bytes(struct wire_request *request, const void *bytes, size_t len);

/* An answer that is being read. Past its end all numbers are 0, all strings empty, and is_short is set. */
struct wire_answer {
        uint8_t *bytes;
        size_t len, at;
        int is_short;
};

int64_t wire_get(struct wire_answer *answer, size_t n_bytes);
/* Return the length of an array; 0 if it is null or cannot be. */
int32_t wire_get_count(struct wire_answer *answer);
/* Return a string, or "" for null, which the caller frees. */
char *wire_get_string(struct wire_answer *answer);
/* Return bytes, valid until the answer is cleared; *len is 0 for null. */
const uint8_t *wire_get_bytes(struct wire_answer *answer, size_t *len);
void wire_skip(struct wire_answer *answer, size_t n_bytes);
void wire_skip_string(struct wire_answer *answer);

/* Likewise, in the compact encodings. Structures and headers end with tags: a zero byte for none. */
void wire_put_compact(struct wire_request *request, const char *text);
int32_t wire_get_compact_count(struct wire_answer *answer);
char *wire_get_compact(struct wire_answer *answer);
void wire_skip_compact(struct wire_answer *answer);
void wire_skip_tags(struct wire_answer *answer);

/* Release the answer; harmless after a failure. */
void wire_clear(struct wire_answer *answer);

/**
 * wire_call(dial, request, answer, timeout_ms, failure, error):
 * Send the request, which is released, and read the answer behind its header. Returns 0, or -1 with the
 * reason.
 */
int wire_call(struct dial *dial, struct wire_request *request, struct wire_answer *answer, int timeout_ms,
              enum dial_failure *failure, struct error *error) MUST_CHECK;

#endif
