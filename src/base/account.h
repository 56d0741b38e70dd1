#ifndef BASE_ACCOUNT_H
#define BASE_ACCOUNT_H

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#define ACCOUNT_SERVICE_USER "gatepost" /* the user of the systemd units */

/* The account of a daemon, to check beforehand what it will be allowed to do. */
struct account {
        uid_t user;
        gid_t group;
        int may_bind_any_port;
};

/* Return the account of this process. */
struct account account_this(void);

/* Return the account of the systemd units, or that of this process if the machine does not have it. */
struct account account_service(void);

/*
 * Return whether an account may access a file or directory: mode is of R_OK, W_OK and X_OK. For another
 * account than this one, only the mode of the file is known.
 */
int account_may(const struct account *account, const char *path, const struct stat *st, int mode);

/*
 * Find the first directory above a path that an account may not enter; of another account than this one as
 * above. Return 1 and write it, or return 0.
 */
int account_find_closed(const struct account *account, const char *path, char directory[PATH_MAX]);

#endif
