#ifndef CLI_QUARANTINE_APPEND_H
#define CLI_QUARANTINE_APPEND_H

#include "cli/quarantine.h"

/* Releases records of quarantine: appends their deliveries to `deliveries` again. */

enum release_outcome {
        RELEASE_PENDING,
        RELEASE_POSSIBLE,     /* in a dry run: it would be released */
        RELEASE_ACKNOWLEDGED, /* all in-sync replicas have it */
        RELEASE_MADE_BEFORE,  /* it was released before */
        RELEASE_REFUSED,      /* it cannot be released, for a reason */
        RELEASE_FAILED,       /* Kafka rejected it or did not acknowledge it, for a reason */
        RELEASE_N_OUTCOMES,
};

/* A record to release. */
struct quarantine_release {
        const struct quarantine_record *record;
        enum release_outcome outcome;
        char *reason; /* why it was refused or failed, or NULL */
        size_t len;   /* of its body in bytes, once it is appended */
        /*
         * Prediction for the router, by this configuration: it publishes the release, or quarantines it
         * again.
         */
        const char *topic;
        const char *quarantine_reason;
        char *quarantine_detail;
};

typedef void quarantine_append_report(const struct quarantine_release *release, const struct config *config);

struct quarantine_append {
        const struct quarantine *quarantine;
        struct quarantine_release *releases; /* sorted by ID; appended while RELEASE_PENDING */
        size_t n;
        int is_dry_run;                   /* predict what the router will do, and append nothing */
        quarantine_append_report *report; /* called for each record when its outcome is known; may be NULL */
};

/**
 * quarantine_append_all(append):
 * Read the records again with their bodies, predict what the router will do with them, and append them. Holds
 * only a few bodies in memory. Returns 0, or an exit status after printing why it ended early. Records that
 * were not acknowledged are then RELEASE_FAILED: they may have been appended, and can safely be released
 * again.
 */
int quarantine_append_all(struct quarantine_append *append) MUST_CHECK;

#endif
