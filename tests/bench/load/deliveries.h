#ifndef BENCH_DELIVERIES_H
#define BENCH_DELIVERIES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Deliveries that are all alike but for a number in the body, the delivery-id and the signature. The signatures are made
 * before the first is sent, and all for one timestamp: what sends them is not to be busy with that.
 */
struct deliveries_spec {
        const char *path;
        const char *header_prefix;
        const char *secret;
        const char *webhook_id;
        size_t n;
        size_t body_len; /* at least DELIVERIES_BODY_MIN */
        int forged;      /* the signatures are wrong */
};

#define DELIVERIES_BODY_MIN 96

struct deliveries;

/* Ends the process when something fails. spec is used up to the end. */
struct deliveries *deliveries_new(const struct deliveries_spec *spec);
void deliveries_free(struct deliveries *deliveries);

/* The length of every request. */
size_t deliveries_len(const struct deliveries *deliveries);

/* Write the request that none is like yet to a buffer: what all have in common. */
void deliveries_begin(const struct deliveries *deliveries, char *request);

/* Make a request that is in such a buffer the one of a number below n. */
void deliveries_number(const struct deliveries *deliveries, size_t number, char *request);

#endif
