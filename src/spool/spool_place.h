#ifndef SPOOL_SPOOL_PLACE_H
#define SPOOL_SPOOL_PLACE_H

#include "base/compiler.h"
#include "config/config.h"

/**
 * spool_place_check(config, report):
 * Check the directory of the spool for the user of the systemd units, as listen_check() does for addresses:
 * whether it can be created or written, who can read it, and whether its file system is fit for it. Change
 * nothing. Call report with each problem. Return 0, or -1 after an error.
 */
int spool_place_check(const struct config *config, problems_reporter *report) MUST_CHECK;

#endif
