#ifndef CLI_IDENTITY_H
#define CLI_IDENTITY_H

#include <limits.h>
#include <pwd.h>
#include <sys/types.h>

#include "base/json_tree.h"

/*
 * A user with its groups, and what it may access. That of a running daemon has the groups of the process,
 * which are not those of /etc/group when the unit has SupplementaryGroups= or when the user has become a
 * member since.
 */
struct identity {
        uid_t uid;
        gid_t gid;
        char *name;    /* or the number, for a user without an entry in passwd */
        gid_t *groups; /* the supplementary ones */
        size_t n_groups;
        int is_running; /* the groups are those of the process; else those that the databases have */
        struct json_value *status; /* the daemon's report, or NULL */
        char *root;                /* the path of the root directory of its process; NULL: not known */
};

void identity_clear(struct identity *identity);

/*
 * Set the user and the groups that its process starts with: this one and those of which it is a member.
 * Returns whether there is a user.
 */
int identity_find(struct identity *identity, const struct passwd *user, gid_t gid);

/* Set the user and the groups of a running daemon, by its report. Returns whether it says both. */
int identity_read(struct identity *identity, const struct json_value *status);

/* No errno: root may be without CAP_SETUID or CAP_SETGID, or in a namespace without that user. */
#define IDENTITY_CANNOT_TRY 255

/*
 * Try to access a file as a user, in a process of its own; NULL: as this one. Returns 0, an errno, or
 * IDENTITY_CANNOT_TRY.
 */
int identity_try(const struct identity *identity, const char *path, int mode);

/*
 * Try to access a file as this user where a process has its root directory. Returns 0, an errno, or
 * IDENTITY_CANNOT_TRY.
 */
int identity_try_at(const char *root, const char *path, int mode);

/*
 * Write the first directory of a path that a user may not enter; if the path leads through links, also of the
 * path to which they lead. Returns whether there is one.
 */
int identity_find_closed(const struct identity *identity, const char *path, char directory[PATH_MAX]);

#endif
