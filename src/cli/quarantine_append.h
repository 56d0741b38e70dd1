#ifndef CLI_QUARANTINE_APPEND_H
#define CLI_QUARANTINE_APPEND_H

#include "cli/quarantine_outcome.h"

struct quarantine_append {
        const struct quarantine *quarantine;
        struct releasing *all; /* by ID; those with OUTCOME_PENDING are to be released */
        size_t n;
        int is_dry;   /* look, and append nothing */
        int is_quiet; /* do not print what happened to each */
};

/**
 * quarantine_append_all(append):
 * Read the records again, append them to `deliveries`, acknowledged by all in-sync replicas, and print what happened to
 * each when it is known. Takes memory for a few bodies, however many there are. Returns 0, or an exit status after saying
 * why it ended early; then those not acknowledged are OUTCOME_FAILED: they may or may not have come in, and releasing them again
 * does no harm.
 */
int quarantine_append_all(struct quarantine_append *append) MUST_CHECK;

#endif
