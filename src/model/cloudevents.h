#ifndef MODEL_CLOUDEVENTS_H
#define MODEL_CLOUDEVENTS_H

#include <stddef.h>

#include "base/clock.h"
#include "model/judge.h"
#include "model/record.h"

#define CLOUDEVENTS_MAX_HEADERS 10

/* An event's record headers: CloudEvents 1.0, Kafka protocol binding, binary content mode. */
struct cloudevents {
        struct record_header headers[CLOUDEVENTS_MAX_HEADERS];
        size_t n;
        char source[80];
        char time[CLOCK_RFC3339_SIZE];
};

/**
 * cloudevents_describe(record, verdict, event):
 * The headers of the event that a record becomes. The spans belong to the record, the verdict and event itself.
 */
void cloudevents_describe(const struct record *record, const struct verdict *verdict,
                          struct cloudevents *event);

#endif
