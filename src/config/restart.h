#ifndef CONFIG_RESTART_H
#define CONFIG_RESTART_H

#include "config/config.h"

/* An option, or a whole section, that differs; name is NULL for a section. */
typedef void restart_visit(const char *section, const char *name, void *arg);

/**
 * restart_needed(now, then, visit, arg):
 * Call visit for each option in which two configurations differ and which the daemon takes over only when it is started
 * again: all but those of sources, the TLS files while there is TLS in both, and [service], which the daemon does not use.
 */
void restart_needed(const struct config *now, const struct config *then, restart_visit *visit, void *arg);

#endif
