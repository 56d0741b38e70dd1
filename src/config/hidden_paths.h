#ifndef CONFIG_HIDDEN_PATHS_H
#define CONFIG_HIDDEN_PATHS_H

#include "config/config.h"
#include "config/ini.h"

/* The options that name a path, which the systemd units may hide from gatepostd. */

/* Return whether an option names a file, by an absolute path, that a process with these roles reads. */
int hidden_paths_is_file(const struct ini_entry *entry, unsigned roles);

/*
 * Warn of paths that the units hide, and of relative ones, unless this process is of a unit: what it sees is
 * not hidden.
 */
void hidden_paths_warn(const struct config *config, const struct ini *ini, struct problems *problems);

#endif
