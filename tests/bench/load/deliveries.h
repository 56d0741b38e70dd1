#ifndef BENCH_DELIVERIES_H
#define BENCH_DELIVERIES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Deliveries that differ only in a number in the body, in the delivery-id, in the signature, and in the kind
 * if there are several. All are signed in advance, with the same timestamp, so that signing does not slow
 * down the sender.
 */
struct deliveries_spec {
        const char *secret;
        const char *webhook_id;
        size_t n;
        size_t body_len; /* at least DELIVERIES_BODY_MIN */
        /* kind.0000 and so on, in turn, up to DELIVERIES_MAX_KINDS; 0: invoice.accepted only */
        size_t n_kinds;
        int forged; /* wrong signatures */
};

#define DELIVERIES_BODY_MIN 96
#define DELIVERIES_MAX_KINDS 10000

struct deliveries;

/* Sign all deliveries. spec must outlive them. Any error ends the process. */
struct deliveries *deliveries_new(const struct deliveries_spec *spec);
void deliveries_free(struct deliveries *deliveries);

/* Return the length of a request; all have the same. */
size_t deliveries_len(const struct deliveries *deliveries);

/* Write the common part of all requests to a buffer. */
void deliveries_begin(const struct deliveries *deliveries, char *request);

/* Turn the request in a buffer from deliveries_begin() into the delivery with this number (below n). */
void deliveries_number(const struct deliveries *deliveries, size_t number, char *request);

#endif
