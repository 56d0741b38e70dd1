#ifndef CLI_STATUS_FINDINGS_H
#define CLI_STATUS_FINDINGS_H

#include "base/json_tree.h"
#include "config/findings.h"

/**
 * status_findings(status, findings):
 * Append what is not in order by the daemon's /status: its spool, the requests that it refused and the
 * records that it quarantined within the hour, losses, and partitions that are not routed. Times are the
 * daemon's own, so this machine's clock does not matter. `status` prints the findings; `doctor` makes them a
 * step.
 */
void status_findings(const struct json_value *status, struct findings *findings);

#endif
