#ifndef CONFIG_RESTART_H
#define CONFIG_RESTART_H

#include "config/config.h"

/* An option, or a whole section, that differs; name is NULL for a section. */
typedef void restart_visit(const char *section, const char *name, void *arg);

/**
 * restart_needed(now, then, visit, arg):
 * Call visit for each option in which two configurations differ and which the daemon takes over only when it is started
 * again: those that have OPTION_RESTART in the table, the properties of [kafka], [events] that come with another prefix, and
 * the files of TLS when there is TLS in one configuration and none in the other.
 */
void restart_needed(const struct config *now, const struct config *then, restart_visit *visit, void *arg);

/**
 * restart_keep_topics(next, now):
 * The names of topics and of the group begin with a prefix that takes a restart: when it differs, next's become now's.
 */
void restart_keep_topics(struct config *next, const struct config *now);

#endif
