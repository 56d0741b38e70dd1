#ifndef CLI_AUDIT_WORK_H
#define CLI_AUDIT_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/audit_plan.h"
#include "cli/progress.h"
#include "model/digest.h"
#include "model/tally.h"

#define AUDIT_MAX_EXAMPLES 20
#define AUDIT_EXAMPLE_ID_SIZE 65 /* of a delivery-id */

/* What was counted of a topic, or of all. */
struct audit_counts {
        uint64_t n_demanded; /* records that must be there */
        uint64_t n_read;     /* records that are there and recent enough to count */
        uint64_t n_faults[TALLY_N_FAULTS];
};

struct audit_example {
        struct tally_finding finding;
        char delivery_id[AUDIT_EXAMPLE_ID_SIZE]; /* empty: not known */
};

/* An audit under way: what it has to compare by, and what it has found. */
struct audit {
        const struct audit_plan *plan;
        struct tally *tally;
        struct digest *digest;
        struct progress progress;
        size_t n_passes; /* that are over */
        struct audit_counts *topics;
        struct audit_counts total;
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

/* The topic in which the place of a finding is: `deliveries` for what is lost. */
const char *audit_where(const struct audit *audit, const struct tally_finding *finding);

/* Begin to tell how far the reading of ranges is, in this pass. */
void audit_progress_begin(struct audit *audit, const char *what, const struct range *ranges, size_t n);

/* Find out the delivery-ids of the examples, as far as they can be read. */
void audit_identify(struct audit *audit);

#endif
