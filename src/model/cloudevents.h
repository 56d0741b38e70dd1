#ifndef MODEL_CLOUDEVENTS_H
#define MODEL_CLOUDEVENTS_H

#include <stddef.h>

#include "base/clock.h"
#include "model/judge.h"
#include "model/record.h"
#include "model/release.h"

#define CLOUDEVENTS_MAX_HEADERS 10

/* The longest delivery-id that the judge lets through, a dot, and the ID of a release; there is no NUL. */
#define CLOUDEVENTS_ID_SIZE (JUDGE_TEXT_MAX + 1 + RELEASE_ID_SIZE)

/* An event's record headers: CloudEvents 1.0, Kafka protocol binding, binary content mode. */
struct cloudevents {
        struct record_header headers[CLOUDEVENTS_MAX_HEADERS];
        size_t n;
        char id[CLOUDEVENTS_ID_SIZE];
        char source[80];
        char time[CLOCK_RFC3339_SIZE];
};

/**
 * cloudevents_describe(record, verdict, event):
 * The headers of the event that a record becomes, which judge_decide() is to publish. The spans belong to the record, the
 * verdict and event itself. ce_id is the delivery-id; that of a release is `<delivery-id>.<gatepost-released>`, because a
 * release is an event of its own, and CloudEvents wants ce_source and ce_id unique (1.0.2, section 3.1.1).
 */
void cloudevents_describe(const struct record *record, const struct verdict *verdict,
                          struct cloudevents *event);

#endif
