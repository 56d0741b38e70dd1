#ifndef ROUTER_RECHECK_H
#define ROUTER_RECHECK_H

#include "base/compiler.h"
#include "router/partition.h"

/* Asking for a partition's position again, because the known state of its log may be wrong. */

/* Ask again, and log why. */
void recheck(struct partition *partition, const char *why);

/* The log is not the routed one: the record before decide_from differs, or is missing. */
void recheck_divergence(struct partition *partition, const char *topic);

/*
 * The dedup table contains uncommitted records of a log that may have been truncated before them: new
 * deliveries would be mistaken for repeats of lost ones. Discard it.
 */
void recheck_open(struct partition *partition);

/* A record comes from another origin than its predecessor. Returns whether it may be processed. */
int recheck_allows_change(struct partition *partition, int64_t offset, int64_t timestamp_ms) MUST_CHECK;

#endif
