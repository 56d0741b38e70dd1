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
#define RECORD_SPOOLED "gatepost-spooled"
#define RECORD_SPOOL_SIGNATURE "gatepost-spool-signature"
#define RECORD_REASON "gatepost-reason"
#define RECORD_DETAIL "gatepost-detail"
#define RECORD_PARTITION "gatepost-partition"
#define RECORD_OFFSET "gatepost-offset"
#define RECORD_TRACEPARENT "traceparent"
#define RECORD_TRACESTATE "tracestate"

/* Bytes that belong to somebody else. data is NULL if there are none. */
struct span {
        const char *data;
        size_t len;
};

/* A header of a record to be written. */
struct record_header {
        const char *name;
        struct span value; /* no data: null */
};

/* A record of `deliveries`, independent of Kafka's types. The spans belong to the owner of the record. */
struct record {
        int32_t partition;
        int64_t offset;
        int64_t timestamp_ms; /* LogAppendTime */
        struct span key;      /* the delivery-id */
        struct span body;
        struct span source;
        struct span webhook_id;
        struct span timestamp;  /* as signed: 10 digits */
        struct span signature;  /* sha256= and 64 hexadecimal digits */
        struct span received;   /* RFC 3339, by the receiver's clock */
        struct span instance;   /* of the receiver */
        struct span request_id; /* x-request-id of the answer; no data in old records */
        struct span replay_of;
        struct span released;
        struct span release_signature; /* model/reverification.h */
        struct span spooled;           /* when the spool was drained, RFC 3339; no data: it was not spooled */
        struct span spool_signature;   /* model/reverification.h */
        struct span traceparent;
        struct span tracestate;
};

/**
 * record_add_header(record, name, value):
 * Set a header of the record, if it is known. The last of repeated headers counts.
 */
void record_add_header(struct record *record, const char *name, struct span value);

/*
 * Return the signed timestamp in seconds since the epoch, or -1 if it is not ten digits, as in a foreign
 * record.
 */
int64_t record_signed_s(const struct record *record);

#endif
