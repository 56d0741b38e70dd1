#ifndef CLI_AUDIT_RESULT_H
#define CLI_AUDIT_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/tally.h"
#include "config/config.h"

/* The result of an audit, as text and as JSON. */

#define AUDIT_MAX_EXAMPLES 20
#define AUDIT_EXAMPLE_ID_SIZE 65 /* of a delivery-id */

/* Counts of a topic, or of all topics. */
struct audit_counts {
        uint64_t n_required; /* records that must have been published */
        uint64_t n_older;    /* published records whose deliveries are too old to be compared */
        uint64_t n_faults[TALLY_N_FAULTS];
};

/* Counts of the deliveries, not of those before --since. */
struct audit_deliveries {
        uint64_t n_checked;
        uint64_t n_excepted;  /* whose record of quarantine was accepted as it is */
        uint64_t n_waiting;   /* not committed by a router when the audit began */
        uint64_t n_unchecked; /* too little of the log is left to judge them, or their results were deleted */
        uint64_t n_deleted;   /* offsets that were deleted before a router committed them */
        int has_no_router;    /* deliveries wait in a partition without a committed offset */
        int64_t first_checked_ms;
        int64_t last_checked_ms;
        int64_t first_waiting_ms;
        int64_t last_unchecked_ms;
};

struct audit_example {
        struct tally_finding finding;
        char delivery_id[AUDIT_EXAMPLE_ID_SIZE]; /* empty if unknown */
};

struct audit_result {
        const struct config *config;
        const char *const *names; /* of the topics */
        struct audit_counts *topics;
        size_t n_topics;
        struct audit_deliveries deliveries;
        struct audit_example examples[AUDIT_MAX_EXAMPLES];
        size_t n_examples;
        int has_since;    /* --since was given */
        int64_t slack_ms; /* of the plan */
};

/* Add a finding to the counts and, while there is room, to the examples. */
void audit_result_add(struct audit_result *result, const struct tally_finding *finding);

/* Return the topic that the place of a finding is in: `deliveries` for a lost record. */
const char *audit_result_topic(const struct audit_result *result, const struct tally_finding *finding);

/* Print a table to stdout and limits and examples to stderr, or one JSON object to stdout. */
void audit_result_print_text(const struct audit_result *result);
void audit_result_print_json(const struct audit_result *result);

/* Return the exit status of the audit. */
int audit_result_status(const struct audit_result *result);

#endif
