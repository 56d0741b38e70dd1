#ifndef MODEL_DELIVERY_H
#define MODEL_DELIVERY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/signature.h"

#define DELIVERY_ID_MAX 64 /* bytes of a delivery-id and of a webhook-id */

/* The four headers of every delivery, named <header_prefix>-signature and so on. */
enum delivery_header {
        DELIVERY_SIGNATURE,
        DELIVERY_TIMESTAMP,
        DELIVERY_WEBHOOK_ID,
        DELIVERY_ID,
        DELIVERY_N_HEADERS
};

/* The headers of a request: the value of the first of each, and their number. */
struct delivery_headers {
        const char *values[DELIVERY_N_HEADERS];
        unsigned counts[DELIVERY_N_HEADERS];
};

/* The well-formed headers of a delivery. The texts belong to the request. */
struct delivery {
        const char *signature_text;
        uint8_t signature[SIGNATURE_SIZE];
        const char *timestamp_text;
        int64_t timestamp; /* seconds since the epoch, as signed */
        const char *webhook_id;
        const char *delivery_id;
        const struct signature_key *key; /* that made the signature; NULL until that is known */
};

/*
 * Return the part of a header's name after the prefix and hyphen: signature, timestamp, webhook-id,
 * delivery-id.
 */
const char *delivery_header_suffix(enum delivery_header header);

/**
 * delivery_header_prefix(header, name):
 * Return the length of the prefix of a name that ends as this header's does, whatever the prefix is; 0 if the
 * name ends in another way.
 */
size_t delivery_header_prefix(enum delivery_header header, const char *name);

/**
 * delivery_headers_add(headers, prefix, name, value):
 * Add a header of a request if it is one of the four with the prefix. Names are case-insensitive.
 */
void delivery_headers_add(struct delivery_headers *headers, const char *prefix, const char *name,
                          const char *value);

/**
 * delivery_parse(headers, delivery, faults):
 * Check that each header occurs once and is well formed, and read it. faults[h] is NULL or the error in
 * header h, a constant text without the value. Return the number of faults.
 */
size_t delivery_parse(const struct delivery_headers *headers, struct delivery *delivery,
                      const char *faults[DELIVERY_N_HEADERS]) MUST_CHECK;

/* Return whether the signed timestamp differs from now by at most the tolerance, in either direction. */
int delivery_is_fresh(const struct delivery *delivery, int64_t now_ms, uint64_t tolerance_ms);

/**
 * delivery_traceparent_is_valid(value), delivery_tracestate_is_valid(value):
 * Return whether a header of W3C Trace Context may be passed on. A traceparent of a later version than 00 may
 * if its first four fields are well formed (section 3.2.4). A tracestate must be 1 to 512 bytes of printable
 * ASCII; its list members are not checked.
 */
int delivery_traceparent_is_valid(const char *value);
int delivery_tracestate_is_valid(const char *value);

#endif
