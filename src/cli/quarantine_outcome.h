#ifndef CLI_QUARANTINE_OUTCOME_H
#define CLI_QUARANTINE_OUTCOME_H

#include <stddef.h>

#include "cli/quarantine.h"
#include "model/topic_table.h"

/* What happened to a record that was to be released. */
enum outcome {
        OUTCOME_PENDING,  /* it is under way */
        OUTCOME_POSSIBLE, /* it would be released, but this is a dry run */
        OUTCOME_RELEASED,
        OUTCOME_BEFORE,  /* it was released before */
        OUTCOME_REFUSED, /* it cannot be released; reason says why */
        OUTCOME_FAILED,  /* Kafka did not take it, or did not say that it did; reason says why */
        OUTCOME_N,
};

/* A record on its way. */
struct releasing {
        const struct quarantined *record;
        enum outcome outcome;
        char *reason;
        size_t len; /* bytes of its body, once it is on its way */
        /* What the router will make of it, by this configuration: the topic of an event, or a reason for quarantine. */
        const char *topic;
        const char *quarantine_reason;
        char *quarantine_detail;
};

/* Write what happened to one as a line, or to all as a JSON array, to stdout. */
void outcome_print_text(const struct releasing *releasing, const struct config *config);
void outcome_print_json(const struct releasing *all, size_t n);

/* Write how many there are of each outcome to stderr. Returns the command's exit status. */
int outcome_sum_up(const struct releasing *all, size_t n);

#endif
