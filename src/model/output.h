#ifndef MODEL_OUTPUT_H
#define MODEL_OUTPUT_H

#include <stddef.h>

#include "base/clock.h"
#include "model/judge.h"
#include "model/record.h"
#include "model/release.h"

#define OUTPUT_EVENT_MAX_HEADERS 11

/* The longest delivery-id that the judge accepts, a dot, and the ID of a release, without a NUL. */
#define OUTPUT_EVENT_ID_SIZE (JUDGE_TEXT_MAX + 1 + RELEASE_ID_SIZE)

/* The longest prefix and the longest kind that has a topic, without a NUL. */
#define OUTPUT_EVENT_TYPE_SIZE (RULES_TYPE_PREFIX_MAX + 255)

/* The longest directory of schemas, and the name of a schema with a NUL. */
#define OUTPUT_EVENT_SCHEMA_SIZE (RULES_SCHEMA_BASE_MAX + 64)

/* The record headers of an event: CloudEvents 1.0, Kafka protocol binding, binary content mode. */
struct output_event {
        struct record_header headers[OUTPUT_EVENT_MAX_HEADERS];
        size_t n;
        char id[OUTPUT_EVENT_ID_SIZE];
        char type[OUTPUT_EVENT_TYPE_SIZE];
        char schema[OUTPUT_EVENT_SCHEMA_SIZE];
        char time[CLOCK_RFC3339_SIZE];
};

/**
 * output_describe_event(record, verdict, event):
 * Fill in the headers of the event that a record becomes by a verdict of VERDICT_PUBLISH. The spans belong to
 * the record, the verdict and event. ce_id is the delivery-id; for a release it is
 * `<delivery-id>.<gatepost-released>`, because a release is an event of its own, and ce_source and ce_id
 * together must be unique (CloudEvents 1.0.2, section 3.1.1). ce_dataschema names a file in etc/schemas.
 */
void output_describe_event(const struct record *record, const struct verdict *verdict,
                           struct output_event *event);

#define OUTPUT_QUARANTINE_HEADERS 4
#define OUTPUT_STUB_HEADERS 11
#define OUTPUT_STUB_TEXT_MAX 1024

/*
 * The record that the router writes for a delivery: an event, or the unchanged delivery with the reason for
 * its quarantine. Its form is defined here only, for the router, which writes it, and for the audit, which
 * looks for it.
 *
 * QUARANTINE_UNPUBLISHABLE writes a stub instead of the delivery, which fits into any topic: the key if it
 * has at most OUTPUT_STUB_TEXT_MAX bytes, an empty value, and the headers known to struct record except those
 * of the trace, each cut off at that length. The body stays in `deliveries`.
 */
struct output {
        const char *topic;
        struct span key;
        struct span value; /* no data: empty, not null */
        int keeps_headers; /* the delivery's own headers come before those below */
        const struct record_header *headers;
        size_t n_headers;

        /* Storage for the headers. */
        struct output_event event;
        struct record_header quarantine[OUTPUT_STUB_HEADERS + OUTPUT_QUARANTINE_HEADERS];
        char partition[24];
        char offset[24];
};

/**
 * output_describe(record, verdict, quarantine_topic, output):
 * Fill in the record to write for a delivery. The spans belong to the record, the verdict and output itself,
 * which must not be moved. Return 1, or 0 if nothing is to be written, because the delivery is a duplicate.
 */
int output_describe(const struct record *record, const struct verdict *verdict, const char *quarantine_topic,
                    struct output *output);

#endif
