#ifndef CLI_AUDIT_WORK_H
#define CLI_AUDIT_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/audit_plan.h"
#include "cli/tally.h"
#include "model/digest.h"
#include "model/release.h"

/*
 * A running audit, and its result. audit.c runs it: audit_expected.c reads `deliveries` and decides again
 * what the router must have published, audit_found.c reads what was published, a tally compares both, and
 * audit_print.c prints the result.
 */

#define AUDIT_MAX_EXAMPLES 20
#define AUDIT_EXAMPLE_ID_SIZE 65 /* of a delivery-id */

/* Why the audit accepts a record of quarantine whatever it would decide itself. */
enum audit_exception_reason {
        AUDIT_UNPUBLISHABLE, /* no topic takes the delivery; the record has no value */
        AUDIT_UNVERIFIED,    /* its signature is wrong by the secrets that the router had */
        AUDIT_RELEASED,      /* it was released since, maybe because the configuration was changed */
        AUDIT_N_EXCEPTIONS,
};

/* A record of quarantine with such a reason. */
struct audit_exception {
        struct release_id place; /* of the delivery */
        struct release_id id;    /* of the record */
        enum audit_exception_reason reason;
        uint8_t content[DIGEST_FINGERPRINT_SIZE];     /* of key and value */
        uint8_t fingerprint[DIGEST_FINGERPRINT_SIZE]; /* of the whole record */
};

/* Counts of a topic, or of all topics. */
struct audit_counts {
        uint64_t n_required; /* records that must have been published */
        uint64_t n_read;     /* published records that were compared */
        uint64_t n_older;    /* published records whose deliveries are too old to be compared */
        uint64_t n_faults[TALLY_N_FAULTS];
};

/* Counts of a partition of `deliveries`, or of all. Only n_read includes deliveries before --since. */
struct audit_partition {
        uint64_t n_read;
        uint64_t n_checked;
        uint64_t n_waiting;         /* not committed by a router when the audit began */
        uint64_t n_unjudged;        /* too close to the beginning of the log, or signed long before */
        uint64_t n_results_deleted; /* retention may have deleted their results */
        int64_t first_checked_ms;
        int64_t last_checked_ms;
        int64_t first_waiting_ms;
        int64_t last_unchecked_ms; /* of n_unjudged and n_results_deleted */
};

struct audit_example {
        struct tally_finding finding;
        char delivery_id[AUDIT_EXAMPLE_ID_SIZE]; /* empty if unknown */
};

struct audit {
        const struct audit_plan *plan;
        struct tally *tally;
        struct digest *digest;
        size_t n_passes; /* finished passes */
        struct audit_counts *topics;
        struct audit_counts total;
        struct audit_partition *partitions; /* of `deliveries` */
        struct audit_partition deliveries;  /* their sum */
        uint64_t n_excepted[AUDIT_N_EXCEPTIONS];
        struct audit_exception *exceptions; /* sorted by place */
        size_t n_exceptions;
        struct release_id *released; /* the records that markers name, sorted */
        size_t n_released;
        struct audit_example examples[AUDIT_MAX_EXAMPLES];
        size_t n_examples;
};

/* Return a new audit, or NULL with the reason. The plan must outlive it. */
struct audit *audit_work_new(const struct audit_plan *plan, struct error *error) MUST_CHECK;
void audit_work_free(struct audit *audit);

/* Return whether deliveries of a partition wait for a router that does not run. */
int audit_work_waits(const struct audit *audit, size_t partition);

/* Return how many of the offsets of `deliveries` that were read have no record. */
uint64_t audit_work_gaps(const struct audit *audit);

/* Return the reason as in the header gatepost-reason, or `released`. */
const char *audit_work_exception_name(enum audit_exception_reason reason);

/* Compute the fingerprint of a published record. Returns 0, or -1 when OpenSSL fails. */
int audit_work_fingerprint(struct digest *digest, const rd_kafka_message_t *message,
                           uint8_t bytes[DIGEST_FINGERPRINT_SIZE]) MUST_CHECK;

/* Return the topic that the place of a finding is in: `deliveries` for a lost record. */
const char *audit_work_topic(const struct audit *audit, const struct tally_finding *finding);

#endif
