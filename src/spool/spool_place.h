#ifndef SPOOL_SPOOL_PLACE_H
#define SPOOL_SPOOL_PLACE_H

#include "base/compiler.h"
#include "config/config.h"
#include "metrics/spool_stats.h"
#include "spool/spool_directory.h"

/**
 * spool_place_check(config, report):
 * Check the directory of the spool for the user of the systemd units, as listen_check() does for addresses:
 * whether it can be created or written, who can read it, and whether its file system is fit for it. Change
 * nothing. Call report with each problem. Return 0, or -1 after an error.
 */
int spool_place_check(const struct config *config, problems_reporter *report) MUST_CHECK;

/*
 * Look whether the open directory is still in its place, note it in the figures, and log and count once that
 * it is there no more. Before a delivery is to be stored, nothing else would find out.
 */
void spool_place_watch(const struct spool_directory *directory, struct spool_stats *stats);

#endif
