#include "cli/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/status.h"

void
identity_clear(struct identity *identity)
{
        account_clear(&identity->account);
        free(identity->name);
        free(identity->root);
        json_tree_free(identity->status);
}

void
identity_find(struct identity *identity, const struct passwd *user, gid_t gid)
{
        *identity = (struct identity){.account = account_of(user, gid), .name = mem_strdup(user->pw_name)};
}

int
identity_read(struct identity *identity, const struct json_value *status)
{
        const struct json_value *id = json_tree_get(status, "userId"),
                                *groups = json_tree_get(status, "groupIds");
        const struct json_value *first = groups == NULL ? NULL : groups->first;
        const struct passwd *user;
        struct account *account;

        *identity = (struct identity){0};
        if (id == NULL || first == NULL)
                return 0;
        identity->is_running = 1;
        account = &identity->account;
        *account =
            (struct account){.user = (uid_t)json_tree_value(id), .group = (gid_t)json_tree_value(first)};
        user = getpwuid(account->user);
        identity->name = user == NULL ? mem_printf("%u", (unsigned)account->user) : mem_strdup(user->pw_name);
        account->groups = mem_alloc(groups->n * sizeof(gid_t));
        for (const struct json_value *each = first->next; each != NULL; each = each->next)
                account->groups[account->n_groups++] = (gid_t)json_tree_value(each);
        return 1;
}

/* Links in the path lead to where they lead for the process. */
int
identity_try_at(const char *root, const char *path, int mode)
{
        pid_t child = fork();
        int status;

        if (child == 0) {
                if (chroot(root) != 0 || chdir("/") != 0)
                        _exit(ACCOUNT_CANNOT_TRY);
                _exit(faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
                return ACCOUNT_CANNOT_TRY;
        return WEXITSTATUS(status);
}
