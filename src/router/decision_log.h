#ifndef ROUTER_DECISION_LOG_H
#define ROUTER_DECISION_LOG_H

#include "base/log_flood.h"
#include "metrics/recent.h"
#include "model/judge.h"
#include "model/record.h"

/* The quarantined records of one source, rate-limited by reason. */
struct decision_log_source {
        struct decision_log_source *next;
        char *name; /* "": no configured source */
        struct log_flood quarantined[QUARANTINE_N_REASONS];
};

/* Logs decisions, so that a delivery can be followed by its request id. */
struct decision_log {
        struct decision_log_source *sources;
        struct recent *recent; /* where to note quarantined records for /status */
        struct log_flood strange;
};

/**
 * decision_log_add(log, known, record, verdict):
 * Log a decision: each one at level debug; quarantined records rate-limited by reason and source. known is
 * the name of the source, "" if none of that name is configured. The decisions of an aborted transaction are
 * made, and logged, again.
 */
void decision_log_add(struct decision_log *log, const char *known, const struct record *record,
                      const struct verdict *verdict);

/* Log that a record that was routed before has a source that is not configured. Rate-limited. */
void decision_log_strange(struct decision_log *log, const struct record *record);

void decision_log_clear(struct decision_log *log);

#endif
