#ifndef MODEL_JUDGE_H
#define MODEL_JUDGE_H

#include <stddef.h>

#include "base/compiler.h"
#include "model/decode.h"
#include "model/dedup.h"
#include "model/record.h"
#include "model/rules.h"
#include "model/topic_table.h"

/* Why a genuine delivery is not published. */
enum quarantine_reason {
        QUARANTINE_MALFORMED_JSON,
        QUARANTINE_MISSING_KIND,
        QUARANTINE_UNKNOWN_KIND,
        QUARANTINE_INVALID_FIELD,
        QUARANTINE_CONFLICTING_BODY,
        QUARANTINE_REPLAYED_SIGNATURE,
        QUARANTINE_UNKNOWN_SOURCE,
        QUARANTINE_UNVERIFIED,    /* with [router] verify = on only */
        QUARANTINE_UNPUBLISHABLE, /* decided by the router when Kafka refuses the record */
        QUARANTINE_N_REASONS,
};

enum verdict_action {
        VERDICT_PUBLISH,
        VERDICT_QUARANTINE,
        VERDICT_DROP, /* a repeat */
};

/* A key or subject that is longer is not taken from the body: a record has room for the body and 64 KiB. */
#define JUDGE_TEXT_MAX 1024

/* What is to happen with a record. Spans and rules are valid until the judge is used again. */
struct verdict {
        enum verdict_action action;
        enum quarantine_reason reason;   /* of VERDICT_QUARANTINE */
        char detail[DECODE_DETAIL_SIZE]; /* likewise, for a person */
        const struct topic_rule *topic;  /* of VERDICT_PUBLISH, as all that follows */
        const struct event_rules *rules;
        struct span kind;
        struct span key;     /* the event record's, never empty */
        struct span subject; /* no data: none */
};

/* malformed-json, missing-kind and so on, as in the header gatepost-reason. */
const char *judge_reason_name(enum quarantine_reason reason);

/*
 * Decides what becomes of a record of `deliveries`: the one place where that is decided, for the router and for an
 * audit of what it did. For one thread at a time.
 */
struct judge;

/*
 * A dedup table keeps digests made with the key of the judge that filled it: a table must be used with one judge for as long
 * as it lives. rules, n of them, and topics stay the caller's and must outlive the judge, or be replaced by
 * judge_set_rules(). NULL when memory or OpenSSL fails.
 */
struct judge *judge_new(const struct event_rules *const *rules, size_t n,
                        const struct topic_table *topics) MUST_CHECK;
void judge_free(struct judge *judge);

/* Decide by other rules and topics from now on. Tables that were filled before remain valid. */
void judge_set_rules(struct judge *judge, const struct event_rules *const *rules, size_t n,
                     const struct topic_table *topics);

/* Only remember the record, in its partition's table. Returns 0, or -1 when memory or OpenSSL fails. */
int judge_remember(struct judge *judge, struct dedup *dedup, const struct record *record) MUST_CHECK;

/* Decide, and remember. Returns 0, or -1 when memory or OpenSSL fails; then there is no verdict. */
int judge_decide(struct judge *judge, struct dedup *dedup, const struct record *record,
                 struct verdict *verdict) MUST_CHECK;

#endif
