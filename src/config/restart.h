#ifndef CONFIG_RESTART_H
#define CONFIG_RESTART_H

#include "config/config.h"

/* Called with an option that differs, or a whole section, whose name is NULL. */
typedef void restart_visit(const char *section, const char *name, void *arg);

/**
 * restart_needed(now, then, visit, arg):
 * Call visit for each option whose text differs between two files and that a reload does not apply: options
 * with OPTION_RESTART, properties of [kafka], and the files of TLS if only one configuration has TLS.
 */
void restart_needed(const struct config *now, const struct config *then, restart_visit *visit, void *arg);

/*
 * Whether a restart with another configuration may read other deliveries: with another prefix, or other
 * brokers, which may be of the same cluster.
 */
int restart_moves_deliveries(const struct config *now, const struct config *then);

/**
 * restart_keep_topics(next, now):
 * Replace the prefix in next by that of now, because a prefix needs a restart. [events] of next still counts.
 */
void restart_keep_topics(struct config *next, const struct config *now);

#endif
