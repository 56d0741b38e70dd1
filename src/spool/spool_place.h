#ifndef SPOOL_SPOOL_PLACE_H
#define SPOOL_SPOOL_PLACE_H

#include "config/config.h"
#include "metrics/spool_stats.h"
#include "spool/spool_directory.h"

/*
 * Check the directory of the spool, and that of the router's state, for the user who runs this process:
 * whether it can be created or written. A spool in memory is an error: deliveries that were answered 200 must
 * survive a reboot. Append findings; change nothing.
 */
void spool_place_check(const struct config *config, struct findings *findings);

/*
 * Look whether the open directory is still in its place, note it in the figures, and log and count once that
 * it is there no more. Before a delivery is to be stored, nothing else would find out.
 */
void spool_place_watch(const struct spool_directory *directory, struct spool_stats *stats);

#endif
