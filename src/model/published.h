#ifndef MODEL_PUBLISHED_H
#define MODEL_PUBLISHED_H

#include <stddef.h>

#include "model/cloudevents.h"
#include "model/judge.h"
#include "model/record.h"

#define PUBLISHED_QUARANTINE_HEADERS 4
#define PUBLISHED_STUB_HEADERS 9
#define PUBLISHED_STUB_TEXT_MAX 1024

/*
 * The record that comes of a delivery: an event, or the delivery as it was with the reason of its quarantine. The one
 * place that says what it looks like, for the router that writes it and for an audit that looks for it.
 *
 * QUARANTINE_UNPUBLISHABLE has a stub instead of the delivery, which is small enough for any topic: the delivery's key
 * when it has at most PUBLISHED_STUB_TEXT_MAX bytes, an empty value, and the headers that struct record knows but those
 * of the trace, each cut off at that length. The body stays in `deliveries`.
 */
struct published {
        const char *topic;
        struct span key;
        struct span value; /* no data: empty, not null */
        int keeps_headers; /* the delivery's own headers come before those below */
        const struct record_header *headers;
        size_t n_headers;

        /* Where the headers lie. */
        struct cloudevents event;
        struct record_header quarantine[PUBLISHED_STUB_HEADERS + PUBLISHED_QUARANTINE_HEADERS];
        char partition[24];
        char offset[24];
};

/**
 * published_describe(record, verdict, quarantine_topic, published):
 * What comes of a record. The spans belong to the record, the verdict and published itself, which must stay where it is.
 * Returns 1, or 0 when nothing comes of it: it is a repeat.
 */
int published_describe(const struct record *record, const struct verdict *verdict,
                       const char *quarantine_topic, struct published *published);

#endif
