#ifndef CLI_AUDIT_WORK_H
#define CLI_AUDIT_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/audit_plan.h"
#include "cli/tally.h"
#include "cli/terminal.h"
#include "model/digest.h"
#include "model/release.h"

#define AUDIT_MAX_EXAMPLES 20
#define AUDIT_EXAMPLE_ID_SIZE 65 /* of a delivery-id */

/*
 * Why a router quarantines a delivery whatever the rules say: the audit cannot decide that anew, and accepts such a record of
 * quarantine in place of what the rules say.
 */
enum audit_exception_reason {
        AUDIT_UNPUBLISHABLE, /* no topic takes it; the record has no value */
        AUDIT_UNVERIFIED,    /* its signature does not hold, by the secrets that the router had */
        AUDIT_N_EXCEPTIONS,
};

/* A record of quarantine for one of these reasons. */
struct audit_exception {
        struct release_id place; /* of the delivery */
        enum audit_exception_reason reason;
        uint8_t content[DIGEST_FINGERPRINT_SIZE];     /* key and value */
        uint8_t fingerprint[DIGEST_FINGERPRINT_SIZE]; /* the whole record */
};

/* What was counted of a topic, or of all. */
struct audit_counts {
        uint64_t n_demanded; /* records that must be there */
        uint64_t n_read;     /* records that are there and recent enough to compare */
        uint64_t n_older;    /* records of deliveries that are older than those compared */
        uint64_t n_faults[TALLY_N_FAULTS];
};

/* What became of the deliveries of a partition. Those before --since are in none of these but n_read. */
struct audit_partition {
        uint64_t n_read;
        uint64_t n_checked;
        uint64_t n_waiting;   /* not committed by a router when the audit began */
        uint64_t n_untold;    /* too near to the beginning of the log, or signed long before */
        uint64_t n_forgotten; /* results of that time may have been deleted */
        int64_t first_checked_ms;
        int64_t last_checked_ms;
        int64_t first_waiting_ms;
        int64_t last_unchecked_ms; /* of n_untold and n_forgotten */
};

/* Deliveries that have waited for longer wait for a router that is not there. */
#define AUDIT_MAX_WAIT_MS INT64_C(300000)

struct audit_example {
        struct tally_finding finding;
        char delivery_id[AUDIT_EXAMPLE_ID_SIZE]; /* empty: not known */
};

/* An audit under way: what it has to compare by, and what it has found. */
struct audit {
        const struct audit_plan *plan;
        struct tally *tally;
        struct digest *digest;
        struct terminal_progress progress;
        size_t n_passes; /* that are over */
        struct audit_counts *topics;
        struct audit_counts total;
        struct audit_partition *partitions; /* of `deliveries` */
        struct audit_partition deliveries;  /* all of them */
        uint64_t n_excepted[AUDIT_N_EXCEPTIONS];
        struct audit_exception *exceptions; /* sorted by place */
        size_t n_exceptions;
        struct audit_example examples[AUDIT_MAX_EXAMPLES];
        size_t n_examples;
};

/**
 * audit_expected(audit), audit_found(audit):
 * The two halves of a pass: read `deliveries` and decide as the router does, and add what must and what may have been
 * published; read what was published, and add that. Each returns 0, or an exit status after saying why.
 */
int audit_expected(struct audit *audit) MUST_CHECK;
int audit_found(struct audit *audit) MUST_CHECK;

/* The fingerprint of a record that was published. Returns 0, or -1 when OpenSSL fails. */
int audit_fingerprint(struct digest *digest, const rd_kafka_message_t *message,
                      uint8_t bytes[DIGEST_FINGERPRINT_SIZE]) MUST_CHECK;

/**
 * audit_exceptions(audit), audit_find_exception(audit, record, exception):
 * Read the exceptions from quarantine, before the first pass; then look for the one of a delivery, which is NULL when there
 * is none. The first returns 0, or an exit status after saying why; the second 0, or -1 when OpenSSL fails.
 */
int audit_exceptions(struct audit *audit) MUST_CHECK;
int audit_find_exception(const struct audit *audit, const struct record *record,
                         const struct audit_exception **exception) MUST_CHECK;

/* unpublishable and so on, as in the header gatepost-reason. */
const char *audit_exception_name(enum audit_exception_reason reason);

/* The topic in which the place of a finding is: `deliveries` for what is lost. */
const char *audit_where(const struct audit *audit, const struct tally_finding *finding);

/* Whether a partition of `deliveries` has records that wait for a router that is not there. */
int audit_waits_too_long(const struct audit *audit, size_t partition);

/* How many of the offsets of `deliveries` that were read have no record. */
uint64_t audit_holes(const struct audit *audit);

/* Begin to tell how far the reading of ranges is, in this pass. */
void audit_progress_begin(struct audit *audit, const char *what, const struct range *ranges, size_t n);

/* Find out the delivery-ids of the examples, as far as they can be read. */
void audit_identify(struct audit *audit);

#endif
