#ifndef MODEL_DELIVERY_H
#define MODEL_DELIVERY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/signature.h"

#define DELIVERY_ID_MAX 64 /* bytes of a delivery-id and of a webhook-id */

/* The four headers that every delivery carries, named <header_prefix>-signature and so on. */
enum delivery_header {
        DELIVERY_SIGNATURE,
        DELIVERY_TIMESTAMP,
        DELIVERY_WEBHOOK_ID,
        DELIVERY_ID,
        DELIVERY_N_HEADERS
};

/* What of them a request has: the value of the first one, and how many there are. */
struct delivery_headers {
        const char *values[DELIVERY_N_HEADERS];
        unsigned counts[DELIVERY_N_HEADERS];
};

/* The headers of a delivery, well formed. The texts are those of the request. */
struct delivery {
        const char *signature_text;
        uint8_t signature[SIGNATURE_SIZE];
        const char *timestamp_text;
        int64_t timestamp; /* seconds since the epoch, as signed */
        const char *webhook_id;
        const char *delivery_id;
};

/* The part of a header's name after the prefix and its hyphen: signature, timestamp, webhook-id, delivery-id. */
const char *delivery_header_suffix(enum delivery_header header);

/**
 * delivery_headers_add(headers, prefix, name, value):
 * Take note of a request's header if its name is one of the four under the prefix; names compare without case.
 */
void delivery_headers_add(struct delivery_headers *headers, const char *prefix, const char *name,
                          const char *value);

/**
 * delivery_parse(headers, delivery, faults):
 * Check that each header is there once and well formed, and read it. faults[h] is NULL or what is wrong with header
 * h, a constant sentence without the value. Returns the number of faults.
 */
size_t delivery_parse(const struct delivery_headers *headers, struct delivery *delivery,
                      const char *faults[DELIVERY_N_HEADERS]) MUST_CHECK;

/* Whether the signed timestamp is within the tolerance of now, both ways, bounds included. */
int delivery_is_fresh(const struct delivery *delivery, int64_t now_ms, uint64_t tolerance_ms);

/**
 * delivery_traceparent_is_valid(value), delivery_tracestate_is_valid(value):
 * Return whether a header of W3C Trace Context may be passed on. A traceparent of a later version than 00 may if its first four fields
 * are well formed (section 3.2.4). A tracestate must be 1 to 512 bytes of printable ASCII; its list members are not checked.
 */
int delivery_traceparent_is_valid(const char *value);
int delivery_tracestate_is_valid(const char *value);

#endif
