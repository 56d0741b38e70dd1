#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

#include <stddef.h>
#include <stdint.h>

/* The record headers of the topics `deliveries` and `quarantine`. */
#define RECORD_SOURCE "gatepost-source"
#define RECORD_WEBHOOK_ID "gatepost-webhook-id"
#define RECORD_TIMESTAMP "gatepost-timestamp"
#define RECORD_SIGNATURE "gatepost-signature"
#define RECORD_RECEIVED "gatepost-received"
#define RECORD_REQUEST_ID "gatepost-request-id"
#define RECORD_INSTANCE "gatepost-instance"
#define RECORD_REPLAY_OF "gatepost-replay-of"
#define RECORD_RELEASED "gatepost-released"
#define RECORD_RELEASE_SIGNATURE "gatepost-release-signature"
#define RECORD_REASON "gatepost-reason"
#define RECORD_DETAIL "gatepost-detail"
#define RECORD_PARTITION "gatepost-partition"
#define RECORD_OFFSET "gatepost-offset"
#define RECORD_TRACEPARENT "traceparent"
#define RECORD_TRACESTATE "tracestate"

/* Bytes somebody else owns. data is NULL when there are none. */
struct span {
        const char *data;
        size_t len;
};

/* A header of a record that is to be. */
struct record_header {
        const char *name;
        struct span value; /* no data: a null value */
};

/* One record of `deliveries`, seen without knowing Kafka. All spans belong to whoever holds the record. */
struct record {
        int32_t partition;
        int64_t offset;
        int64_t timestamp_ms; /* the record's own, LogAppendTime */
        struct span key;      /* the delivery-id */
        struct span body;
        struct span source;
        struct span webhook_id;
        struct span timestamp;  /* as signed: 10 digits */
        struct span signature;  /* sha256= and 64 hexadecimal digits */
        struct span received;   /* RFC 3339, by the receiver's clock */
        struct span instance;   /* the receiver's */
        struct span request_id; /* x-request-id of the answer; no data in records of old */
        struct span replay_of;
        struct span released;
        struct span release_signature; /* model/reverification.h */
        struct span traceparent;
        struct span tracestate;
};

/**
 * record_add_header(record, name, value):
 * Take note of one of the record's headers, if it is one that matters here. Of a repeated header the last counts.
 */
void record_add_header(struct record *record, const char *name, struct span value);

/* When the delivery was signed, in seconds since the epoch; -1 when a foreign record has no ten digits there. */
int64_t record_signed_s(const struct record *record);

#endif
