#ifndef BENCH_DELIVERIES_H
#define BENCH_DELIVERIES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Deliveries that are all alike but for a number in the body, the delivery-id and the signature, and for the kind, when
 * there are several. The signatures are made before the first is sent, and all for one timestamp: what sends them is not
 * to be busy with that.
 */
struct deliveries_spec {
        const char *path;
        const char *header_prefix;
        const char *secret;
        const char *webhook_id;
        size_t n;
        size_t body_len; /* at least DELIVERIES_BODY_MIN */
        size_t
            n_kinds; /* kind.0000 and so on, in turn, up to DELIVERIES_MAX_KINDS; 0: invoice.accepted alone */
        int forged;  /* the signatures are wrong */
};

#define DELIVERIES_BODY_MIN 96
#define DELIVERIES_MAX_KINDS 10000

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
