#ifndef ROUTER_DECISION_LOG_H
#define ROUTER_DECISION_LOG_H

#include "base/log_flood.h"
#include "model/judge.h"
#include "model/record.h"

/* What the log tells of a source's records that go to quarantine. */
struct decision_log_source {
        struct decision_log_source *next;
        char *name; /* "": none that is configured */
        struct log_flood quarantined[QUARANTINE_N_REASONS];
};

/* What the log tells of decisions, so that a delivery can be followed by its request id. */
struct decision_log {
        struct decision_log_source *sources;
};

/**
 * decision_log_add(log, known, record, verdict):
 * A record was decided: at level debug a line for each; those for quarantine summed by reason and source. known is the
 * name of its source, "" when none of that name is configured. What a transaction decided that is given up is decided,
 * and told, once more.
 */
void decision_log_add(struct decision_log *log, const char *known, const struct record *record,
                      const struct verdict *verdict);

void decision_log_clear(struct decision_log *log);

#endif
