#ifndef MODEL_JUDGE_H
#define MODEL_JUDGE_H

#include <stddef.h>

#include "base/compiler.h"
#include "dedup/dedup.h"
#include "model/decode.h"
#include "model/record.h"
#include "model/rules.h"
#include "model/topic_table.h"

/* The reasons not to publish a delivery. */
enum quarantine_reason {
        QUARANTINE_MALFORMED_JSON,
        QUARANTINE_MISSING_KIND,
        QUARANTINE_UNKNOWN_KIND,
        QUARANTINE_INVALID_FIELD,
        QUARANTINE_CONFLICTING_BODY,
        QUARANTINE_REPLAYED_SIGNATURE,
        QUARANTINE_UNKNOWN_SOURCE,
        QUARANTINE_UNVERIFIED, /* only with [router] verify = on */
        QUARANTINE_SPOOLED_TOO_LONG,
        QUARANTINE_UNPUBLISHABLE, /* decided by the router when Kafka refuses the record */
        QUARANTINE_N_REASONS,
};

enum verdict_action {
        VERDICT_PUBLISH,
        VERDICT_QUARANTINE,
        VERDICT_DROP, /* a duplicate */
        VERDICT_TEST, /* a test delivery of `gatepost doctor`, which is not published either */
};

/* The kind of test deliveries. It is never published, whatever the topics. */
#define JUDGE_TEST_KIND "gatepost.doctor"

/* Longer keys and subjects in a body are ignored, because a record has room for the body and 64 KiB only. */
#define JUDGE_TEXT_MAX 1024

/* What to do with a record. Spans and rules are valid until the next use of the judge. */
struct verdict {
        enum verdict_action action;
        enum quarantine_reason reason;   /* of VERDICT_QUARANTINE */
        char detail[DECODE_DETAIL_SIZE]; /* likewise, for people */
        const struct topic_rule *topic;  /* of VERDICT_PUBLISH, like all below */
        const struct event_rules *rules;
        struct span kind;
        struct span key;     /* of the event's record, never empty */
        struct span subject; /* no data: none */
};

/* Return the value of the header gatepost-reason: malformed-json, missing-kind and so on. */
const char *judge_reason_name(enum quarantine_reason reason);

/*
 * Decides what to do with records of `deliveries`, for the router and for the audit. For one thread at a
 * time.
 */
struct judge;

/*
 * Create a judge. A dedup table contains digests made with the key of the judge that filled it, so it must
 * always be used with the same judge. The n rules and the topics belong to the caller and must outlive the
 * judge or be replaced by judge_set_rules(). key is the secret of its digests, DIGEST_KEY_SIZE bytes; NULL: a
 * random one. Return NULL if memory or OpenSSL fails.
 */
struct judge *judge_new(const struct event_rules *const *rules, size_t n, const struct topic_table *topics,
                        const uint8_t *key) MUST_CHECK;
void judge_free(struct judge *judge);

/* Replace rules and topics. Tables that are already filled remain valid. */
void judge_set_rules(struct judge *judge, const struct event_rules *const *rules, size_t n,
                     const struct topic_table *topics);

/* Only add the record to its partition's table. Return 0, or -1 if memory or OpenSSL fails. */
int judge_remember(struct judge *judge, struct dedup *dedup, const struct record *record) MUST_CHECK;

/*
 * Decide, and add the record to the table. Return 0, or -1 if memory or OpenSSL fails; then verdict is not
 * valid.
 */
int judge_decide(struct judge *judge, struct dedup *dedup, const struct record *record,
                 struct verdict *verdict) MUST_CHECK;

/*
 * Decide only by the body, as about a genuine record that repeats no other; its source must be known. Return
 * 0, or -1 if memory fails; then verdict is not valid.
 */
int judge_decide_body(struct judge *judge, const struct record *record, struct verdict *verdict) MUST_CHECK;

#endif
