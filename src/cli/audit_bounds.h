#ifndef CLI_AUDIT_BOUNDS_H
#define CLI_AUDIT_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "cli/audit_plan.h"
#include "cli/kafka_access.h"
#include "kafka/offsets.h"

#define AUDIT_TIMEOUT_MS KAFKA_ACCESS_TIMEOUT_MS

/* The steps of audit_plan_make() that find out what of the logs is to be read. */

/* Set the ranges to all that is there now. Returns 0, or -1 with the reason. */
int audit_bounds_ask(struct offsets *offsets, struct range *ranges, size_t n, struct error *error) MUST_CHECK;

/**
 * audit_bounds_judge(plan):
 * Find out, by reading the first record of each partition from which some were deleted, what can be demanded: fills
 * from_ms and kept_ms. Returns 0, or an exit status after saying why.
 */
int audit_bounds_judge(struct audit_plan *plan) MUST_CHECK;

/* Leave out of the ranges what need not be read. Returns 0, or -1 with the reason. */
int audit_bounds_narrow(struct audit_plan *plan, struct offsets *offsets, struct error *error) MUST_CHECK;

#endif
