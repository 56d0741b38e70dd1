#ifndef CLI_QUARANTINE_H
#define CLI_QUARANTINE_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/json.h"
#include "config/config.h"
#include "kafka/offsets.h"
#include "kafka/range.h"
#include "model/release.h"

/*
 * The records of quarantine that a `gatepost quarantine` command works on, and whether each was released.
 * They are a snapshot, without bodies: records written later are not included.
 *
 * A record is released by appending its delivery to `deliveries` again (quarantine_append.h). Whether that
 * was done is looked up there (quarantine_search.c). The router may quarantine a release again, as a new
 * record.
 */

enum quarantine_state {
        QUARANTINE_NOT_RELEASED,
        QUARANTINE_RELEASED,
        QUARANTINE_UNSURE, /* see enum quarantine_doubt */
};

/* Why a record is QUARANTINE_UNSURE. */
enum quarantine_doubt {
        QUARANTINE_DOUBT_NONE,
        /* The record does not name the place of its delivery. */
        QUARANTINE_DOUBT_NO_PLACE,
        /* Retention deleted its delivery. */
        QUARANTINE_DOUBT_DELETED,
        /* The partition is missing, or ends before the place of its delivery. */
        QUARANTINE_DOUBT_PAST_END,
        /* There is no readable record at that place. */
        QUARANTINE_DOUBT_NO_RECORD,
        /* There is another record at that place. */
        QUARANTINE_DOUBT_OTHER_RECORD,
        /* Retention deleted records from another partition that may have had a release. */
        QUARANTINE_DOUBT_PARTLY_DELETED,
};

/* A record of quarantine. Header values may hold any bytes; a missing header is NULL. */
struct quarantine_record {
        struct release_id id;
        int64_t timestamp_ms;
        char *key; /* the delivery-id */
        size_t key_len;
        char *signature;
        size_t signature_len;
        char *source;
        size_t source_len;
        char *reason;
        char *detail;
        struct release_id delivery; /* its place in `deliveries`; partition -1: not named */

        int is_stub;      /* Kafka refused the delivery; the record has no body */
        int has_delivery; /* its delivery is still in `deliveries`, with its body */
        int is_extra; /* not queried, but the same delivery as a queried record; quarantine_load() drops it */
        enum quarantine_state state;
        enum quarantine_doubt doubt;
        /* The place in doubt: of this delivery, or of another record of the same delivery. */
        struct release_id doubtful_place;
        /* A release may have been deleted from a partition that the key had before partitions were added. */
        int may_be_lost;

        /* Places of other records; partition -1: none. */
        struct release_id release;       /* its first release, in `deliveries` */
        struct release_id returned_as;   /* the record of quarantine that its release became */
        struct release_id released_from; /* the record of quarantine whose release this record is */
        struct release_id earlier_copy;  /* the same delivery, quarantined before and not released */
};

/* Since when to look, for all records. */
#define QUARANTINE_FROM_BEGINNING INT64_MIN

/* Which records to load. */
struct quarantine_query {
        const char *bootstrap;  /* NULL: the configured brokers */
        const char *reason;     /* NULL: any reason */
        int64_t since_ms;       /* or QUARANTINE_FROM_BEGINNING */
        struct release_id *ids; /* only these, if there are any; sorted */
        size_t n_ids;
};

/* A record of quarantine that is the release of another one. */
struct quarantine_return {
        struct release_id released_from;
        struct release_id id;
        char *key;
        size_t key_len;
        char *source;
        size_t source_len;
};

struct quarantine {
        const struct config *config;
        const struct quarantine_query *query;
        struct range *ranges; /* of the topic, indexed by partition */
        size_t n_ranges;
        struct quarantine_record *records; /* sorted by ID */
        size_t n;
        struct quarantine_return *returns;
        size_t n_returns;
};

/**
 * quarantine_parse_reason(text, query, error), quarantine_add_id(text, query, error):
 * Add an argument to a query, whose ids the caller frees. Return 0, or -1 with the reason.
 */
int quarantine_parse_reason(const char *text, struct quarantine_query *query, struct error *error) MUST_CHECK;
int quarantine_add_id(const char *text, struct quarantine_query *query, struct error *error) MUST_CHECK;

/**
 * quarantine_load(quarantine, config, query):
 * Read the queried records and find out whether they were released. Every queried ID must exist. The address
 * of an embedded broker is added to the query. Returns 0,
 * or an exit status after printing the reason; call quarantine_clear() in either case.
 */
int quarantine_load(struct quarantine *quarantine, const struct config *config,
                    struct quarantine_query *query) MUST_CHECK;
void quarantine_clear(struct quarantine *quarantine);

/* Return the record with this ID, or NULL. */
struct quarantine_record *quarantine_find(const struct quarantine *quarantine, const struct release_id *id);

/* Output of records. */

#define QUARANTINE_CLAUSE_SIZE 512

/* Write why a record is QUARANTINE_UNSURE, as a clause. Returns text. */
char *quarantine_describe_doubt(const struct quarantine *quarantine, const struct quarantine_record *record,
                                char text[QUARANTINE_CLAUSE_SIZE]);

/* Where the body of a record is: of a stub, with its delivery. */
const char *quarantine_body_topic(const struct quarantine *quarantine,
                                  const struct quarantine_record *record);
const struct release_id *quarantine_body_place(const struct quarantine_record *record);

/* Write a place in a topic as `2/1234`, or `-`. Returns text. */
char *quarantine_format_place(const struct release_id *place, char text[RELEASE_ID_SIZE]);

/* Return whether the record was released: no, yes or unsure. */
const char *quarantine_state_name(const struct quarantine_record *record);

/**
 * quarantine_put_members(json, record):
 * Add the members of a record to an open JSON object: id, timestamp, reason, detail, source, deliveryId,
 * delivery, released (null: unsure), release, cameBackAs, cameOf.
 */
void quarantine_put_members(struct json_writer *json, const struct quarantine_record *record);

/* The steps of quarantine_load(), in order. Each returns 0, or an exit status after printing the reason. */

/* Ask Kafka for the ranges of the topic, and check that they include the queried IDs. */
int quarantine_read_bounds(struct quarantine *quarantine, struct offsets *offsets) MUST_CHECK;

/* Read the topic: fill records and returns. */
int quarantine_read(struct quarantine *quarantine) MUST_CHECK;

/* Search `deliveries` for releases of the records: fill their state. */
int quarantine_search(struct quarantine *quarantine, struct offsets *offsets) MUST_CHECK;

/* Point source, key and signature of a record into a message, which still owns them; clear the rest. */
void quarantine_borrow_identity(struct quarantine_record *record, const rd_kafka_message_t *message);

/*
 * Compare by source and key, which identify a delivery, and by signature, which differs between its attempts.
 */
int quarantine_compare_identities(const struct quarantine_record *one, const struct quarantine_record *other);

#endif
