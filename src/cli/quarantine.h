#ifndef CLI_QUARANTINE_H
#define CLI_QUARANTINE_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/json.h"
#include "config/config.h"
#include "kafka/range.h"
#include "model/release.h"

/*
 * The records of quarantine that a `gatepost quarantine` command works on: a snapshot, without bodies, from
 * one pass over the topic. A release leaves a marker there, so that pass also tells which were released.
 */

/* A record of quarantine. Header values may hold any bytes; a missing header is NULL. */
struct quarantine_record {
        struct release_id id;
        int64_t timestamp_ms;
        char *key; /* the delivery-id */
        size_t key_len;
        char *source;
        char *reason;
        char *detail;
        struct release_id delivery; /* its place in `deliveries`; partition -1: not named */
        int is_stub;                /* Kafka refused the body, which only the delivery has */
        int64_t released_ms;        /* when it was released; 0: it was not */
};

/* Since when to look, for all records. */
#define QUARANTINE_FROM_BEGINNING INT64_MIN

/* Which records to load. */
struct quarantine_query {
        const char *bootstrap;  /* NULL: the configured brokers */
        const char *reason;     /* NULL: any reason */
        int64_t since_ms;       /* or QUARANTINE_FROM_BEGINNING */
        struct release_id *ids; /* only these, if there are any */
        size_t n_ids;
};

struct quarantine_marker;

struct quarantine {
        const struct config *config;
        const struct quarantine_query *query;
        struct range *ranges; /* of the topic, indexed by partition */
        size_t n_ranges;
        struct quarantine_record *records; /* sorted by ID */
        size_t n;
        struct quarantine_marker *markers;
        size_t n_markers;
};

/**
 * quarantine_parse_reason(text, query, error), quarantine_add_id(text, query, error):
 * Add an argument to a query, whose ids the caller frees. Return 0, or -1 with the reason.
 */
int quarantine_parse_reason(const char *text, struct quarantine_query *query, struct error *error) MUST_CHECK;
int quarantine_add_id(const char *text, struct quarantine_query *query, struct error *error) MUST_CHECK;

/**
 * quarantine_load(quarantine, config, query):
 * Read the queried records, and whether they were released. Every queried ID must exist. The address of an
 * embedded broker is added to the query. Returns 0, or an exit status after printing the reason; call
 * quarantine_clear() in either case.
 */
int quarantine_load(struct quarantine *quarantine, const struct config *config,
                    struct quarantine_query *query) MUST_CHECK;
void quarantine_clear(struct quarantine *quarantine);

/**
 * quarantine_put_members(json, record):
 * Add the members of a record to an open JSON object: id, timestamp, reason, detail, source, deliveryId,
 * delivery, released, releasedAt.
 */
void quarantine_put_members(struct json_writer *json, const struct quarantine_record *record);

#endif
