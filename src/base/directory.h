#ifndef BASE_DIRECTORY_H
#define BASE_DIRECTORY_H

#include "base/compiler.h"
#include "base/error.h"

/* Directories in which one process keeps files. */

/**
 * directory_fail(error, what, path, reason):
 * Set the error: "cannot <what> <path>: ", this errno and the remedy. Return -1 and keep errno.
 */
int directory_fail(struct error *error, const char *what, const char *path, int reason);

/*
 * Create a directory that does not exist, with mode 0700, so that it survives a power failure. If root makes
 * it, it is given to the owner of the one above. Return 0, or -1 with the reason.
 */
int directory_make(const char *path, struct error *error) MUST_CHECK;

/*
 * Create a file with mode 0600 in a directory, given by its descriptor; without O_EXCL in flags it may exist.
 * If root makes it, it is given to the owner of the directory, as whom the daemon may run next time. Return
 * its descriptor, or -1 with errno set.
 */
int directory_create(int directory, const char *name, int flags) MUST_CHECK;

/*
 * Lock a directory, given by its descriptor, against other processes: itself and its file `lock`. Return the
 * descriptor of that file; closing both unlocks it. Return -1 with errno set: EWOULDBLOCK if another process
 * has it.
 */
int directory_lock(int directory) MUST_CHECK;

#endif
