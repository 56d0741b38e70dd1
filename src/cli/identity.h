#ifndef CLI_IDENTITY_H
#define CLI_IDENTITY_H

#include <pwd.h>
#include <sys/types.h>

#include "base/account.h"
#include "base/json_tree.h"

/*
 * The user of a daemon with its groups. That of a running daemon has the groups of the process, which are not
 * those of /etc/group when the unit has SupplementaryGroups= or when the user has become a member since.
 */
struct identity {
        struct account account;
        char *name;     /* or the number, for a user without an entry in passwd */
        int is_running; /* the groups are those of the process; else those that the databases have */
        struct json_value *status; /* the daemon's report, or NULL */
        char *root;                /* the path of the root directory of its process; NULL: not known */
};

void identity_clear(struct identity *identity);

/* Set the user, and the groups that its process starts with: this one and those of which it is a member. */
void identity_find(struct identity *identity, const struct passwd *user, gid_t gid);

/* Set the user and the groups of a running daemon, by its report. Returns whether it says both. */
int identity_read(struct identity *identity, const struct json_value *status);

/*
 * Try to access a file as this user where a process has its root directory. Returns 0, an errno, or
 * ACCOUNT_CANNOT_TRY.
 */
int identity_try_at(const char *root, const char *path, int mode);

#endif
