#ifndef CLI_AUDIT_EXPECTED_H
#define CLI_AUDIT_EXPECTED_H

#include "base/compiler.h"
#include "cli/audit_work.h"

/*
 * What must have been published: deliveries are decided again by the router's code, from the log alone. The
 * log does not show which deliveries no topic took, or failed verification, or were quarantined by a
 * configuration that was changed before they were released. For these exceptions the audit reads quarantine
 * first, and expects the record that it finds there. A release is a delivery of its own, which the audit
 * decides like any other.
 */

/* Read the exceptions, once before the first pass. Returns 0, or an exit status after printing the reason. */
int audit_expected_read_exceptions(struct audit *audit) MUST_CHECK;

/*
 * The first half of a pass: add the records that must or may have been published to the tally. Returns 0, or
 * an exit status after printing the reason.
 */
int audit_expected_read(struct audit *audit) MUST_CHECK;

#endif
