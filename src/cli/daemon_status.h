#ifndef CLI_DAEMON_STATUS_H
#define CLI_DAEMON_STATUS_H

#include "base/compiler.h"
#include "base/json_tree.h"
#include "config/config.h"

/**
 * daemon_status_read(config, report):
 * Ask the daemon that has this configuration, on this machine, for its /status. Returns 0 and the report, to
 * be released with json_tree_free(); or an exit status after printing why there is none, and the remedy.
 */
int daemon_status_read(const struct config *config, struct json_value **report) MUST_CHECK;

#endif
