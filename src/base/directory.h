#ifndef BASE_DIRECTORY_H
#define BASE_DIRECTORY_H

#include "base/compiler.h"
#include "base/error.h"

/* Directories in which one process keeps files. */

/*
 * Create a directory that does not exist, with mode 0700, so that it survives a power failure. Return 0, or
 * -1 with the reason.
 */
int directory_make(const char *path, struct error *error) MUST_CHECK;

/*
 * Lock a directory, given by its descriptor, against other processes: itself and its file `lock`. Return the
 * descriptor of that file; closing both unlocks it. Return -1 with errno set: EWOULDBLOCK if another process
 * has it.
 */
int directory_lock(int directory) MUST_CHECK;

/* Return what makes a directory writable after a failure with this errno, to follow the reason; may be "". */
const char *directory_remedy(int reason);

/* Return whether an absolute path is a directory or below it, by its name. */
int directory_is_below(const char *path, const char *directory);

/*
 * Return whether a path is below /tmp or /var/tmp: by PrivateTmp= of the units, gatepostd has these for
 * itself, and systemd deletes them when it stops.
 */
int directory_is_temporary(const char *path);

#endif
