#ifndef BASE_UNIT_H
#define BASE_UNIT_H

#include "base/compiler.h"

/* What the systemd units of the package do, as far as other code must know it. */

#define STATE_DIRECTORY "/var/lib/gatepost" /* they make it */

/* Return whether an absolute path is below /tmp or /var/tmp, of which the units have their own. */
int unit_has_own(const char *path);

/*
 * Return the name of the unit of the package that runs gatepostd with this file: gatepost-router@NAME for
 * router-NAME.conf, likewise for a receiver, and gatepostd for others. The caller frees it.
 */
char *unit_name(const char *file) MUST_CHECK;

/*
 * Return a hint, for a remedy, if the units may be why a path cannot be opened with this errno: they hide the
 * directories of users, have a /tmp of their own, and protect the file system. Else "".
 */
const char *unit_hint(const char *path, int reason);

#endif
