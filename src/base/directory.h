#ifndef BASE_DIRECTORY_H
#define BASE_DIRECTORY_H

#include <limits.h>

#include "base/account.h"
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

/* Whether a file of this name in a directory is of Gatepost. */
typedef int directory_owns(const char *name);

/*
 * Find a file of Gatepost in a directory that an account may not open as it must: one that root has left, for
 * example, who ran gatepostd by hand. Return 1 and write its path, or return 0.
 */
int directory_find_denied(const char *path, directory_owns *owns, const struct account *account,
                          char file[PATH_MAX]);

/* What a directory has, but for a lock. */
struct directory_contents {
        int has_own;
        int has_other;
};

/* Look at what a directory has. One that cannot be read has nothing. */
struct directory_contents directory_look(const char *path, directory_owns *owns);

/*
 * Lock a directory, given by its descriptor, against other processes: itself and its file `lock`. Return the
 * descriptor of that file; closing both unlocks it. Return -1 with errno set: EWOULDBLOCK if another process
 * has it.
 */
int directory_lock(int directory) MUST_CHECK;

#endif
