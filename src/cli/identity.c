#include "cli/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/status.h"

void
identity_clear(struct identity *identity)
{
        free(identity->name);
        free(identity->groups);
        free(identity->root);
        json_tree_free(identity->status);
}

int
identity_find(struct identity *identity, const struct passwd *user, gid_t gid)
{
        int n = 0;

        *identity = (struct identity){0};
        if (user == NULL)
                return 0;
        *identity = (struct identity){.uid = user->pw_uid, .gid = gid, .name = mem_strdup(user->pw_name)};
        (void)getgrouplist(user->pw_name, gid, NULL, &n);
        identity->groups = mem_alloc(((size_t)n + 1) * sizeof(gid_t));
        if (n > 0 && getgrouplist(user->pw_name, gid, identity->groups, &n) > 0)
                identity->n_groups = (size_t)n;
        return 1;
}

int
identity_read(struct identity *identity, const struct json_value *status)
{
        const struct json_value *id = json_tree_get(status, "userId"),
                                *groups = json_tree_get(status, "groupIds");
        const struct json_value *first = groups == NULL ? NULL : groups->first;
        const struct passwd *user;

        *identity = (struct identity){0};
        if (id == NULL || first == NULL)
                return 0;
        *identity = (struct identity){.uid = (uid_t)status_value(id),
                                      .gid = (gid_t)status_value(first),
                                      .is_running = 1};
        user = getpwuid(identity->uid);
        identity->name = user == NULL ? mem_printf("%u", (unsigned)identity->uid) : mem_strdup(user->pw_name);
        identity->groups = mem_alloc(groups->n * sizeof(gid_t));
        for (const struct json_value *each = first->next; each != NULL; each = each->next)
                identity->groups[identity->n_groups++] = (gid_t)status_value(each);
        return 1;
}

int
identity_try(const struct identity *identity, const char *path, int mode)
{
        pid_t child;
        int status;

        if (identity == NULL)
                return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno;
        child = fork();
        if (child == 0) {
                if (setgroups(identity->n_groups, identity->groups) != 0 || setgid(identity->gid) != 0 ||
                    setuid(identity->uid) != 0)
                        _exit(IDENTITY_CANNOT_TRY);
                _exit(faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
                return 0;
        return WEXITSTATUS(status);
}

/* Links in the path lead to where they lead for the process. */
int
identity_try_at(const char *root, const char *path, int mode)
{
        pid_t child = fork();
        int status;

        if (child == 0) {
                if (chroot(root) != 0 || chdir("/") != 0)
                        _exit(IDENTITY_CANNOT_TRY);
                _exit(faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
                return IDENTITY_CANNOT_TRY;
        return WEXITSTATUS(status);
}

/* Write the first directory of a path that a user may not enter. Returns whether there is one. */
static int
find_closed_above(const struct identity *identity, const char *path, char directory[PATH_MAX])
{
        for (const char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
                (void)snprintf(directory, PATH_MAX, "%.*s", (int)(at - path), path);
                if (identity_try(identity, directory, X_OK) == EACCES)
                        return 1;
        }
        return 0;
}

int
identity_find_closed(const struct identity *identity, const char *path, char directory[PATH_MAX])
{
        char *target = realpath(path, NULL);
        int result = find_closed_above(identity, path, directory) ||
                     (target != NULL && find_closed_above(identity, target, directory));

        free(target);
        return result;
}
