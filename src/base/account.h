#ifndef BASE_ACCOUNT_H
#define BASE_ACCOUNT_H

#include <limits.h>
#include <pwd.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"

#define ACCOUNT_SERVICE_USER "gatepost" /* the user of the systemd units */

/**
 * account_become(name, error):
 * Let a process of root become a user, with the groups that it is a member of, for good: files then open as
 * they do for the daemon. NULL stands for the user of the systemd units, or for root where there is no such
 * user. Return 1 if the user has changed, 0 if there was nothing to do, or -1 with the reason: there is no
 * such user, or the process is not root. Call it before any file is opened.
 */
int account_become(const char *name, struct error *error) MUST_CHECK;

#define ACCOUNT_UNKNOWN_GROUP ((gid_t)-1) /* of a user that is not of this machine: it has the user's name */

/* The account of a daemon, to find out beforehand what it will be allowed to do. */
struct account {
        uid_t user;
        gid_t group;
        gid_t *groups; /* the supplementary ones; NULL for that of this process */
        size_t n_groups;
        int may_bind_any_port;
};

/* Return the account of this process. */
struct account account_this(void);

/* Return that of a user with this group and those of which it is a member. account_clear() releases it. */
struct account account_of(const struct passwd *user, gid_t group);

/* Return the account of the systemd units, or that of this process if the machine does not have it. */
struct account account_service(void);

void account_clear(struct account *account);

/* No errno: only root can try, with CAP_SETUID and CAP_SETGID, and in a namespace that has the user. */
#define ACCOUNT_CANNOT_TRY 255

/**
 * account_try(account, path, mode):
 * Try to access a path as an account, in a process of its own if it is not the one of this process. mode is
 * F_OK, or of R_OK, W_OK and X_OK. Return 0, an errno, or ACCOUNT_CANNOT_TRY.
 *
 * account_access(account, path, mode):
 * The same, but what cannot be tried is judged by the modes of files. Return 0 or an errno.
 */
int account_try(const struct account *account, const char *path, int mode);
int account_access(const struct account *account, const char *path, int mode);

/*
 * Return what lets an account access a path, to be freed: a command that takes access from nobody. name is
 * that of the user; bits is "r", "x" or "rx"; restart is how to restart the daemon, for what takes effect
 * only then.
 */
char *account_make_way(const struct account *account, const char *name, const char *path, const char *bits,
                       const char *restart);

/*
 * Find the first directory that an account may not enter on the way along a path, through the links in it.
 * Return 1 and write it, without links, or return 0.
 */
int account_find_closed(const struct account *account, const char *path, char directory[PATH_MAX]);

#endif
