#include "base/account.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"

int
account_become(const char *name, struct error *error)
{
        const struct passwd *user;

        if (name == NULL && geteuid() != 0)
                return 0;
        user = getpwnam(name == NULL ? ACCOUNT_SERVICE_USER : name);
        if (user == NULL && name == NULL)
                return 0;
        if (user == NULL)
                return error_set(error, "there is no user %.64s", name);
        if (user->pw_uid == geteuid())
                return 0;
        if (geteuid() != 0)
                return error_set(error, "only root can become user %.64s", user->pw_name);
        if (initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
            setuid(user->pw_uid) != 0)
                return error_set(error, "cannot become user %.64s: %s", user->pw_name, strerror(errno));
        return 1;
}

/* Return whether this process has CAP_NET_BIND_SERVICE. */
static int
has_capability(void)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

        return syscall(SYS_capget, &header, sets) == 0 &&
               (sets[0].effective & (UINT32_C(1) << CAP_NET_BIND_SERVICE)) != 0;
}

struct account
account_this(void)
{
        return (struct account){.user = geteuid(), .group = getegid(), .may_bind_any_port = has_capability()};
}

struct account
account_of(const struct passwd *user, gid_t group)
{
        struct account account = {.user = user->pw_uid, .group = group};
        int n = 0;

        (void)getgrouplist(user->pw_name, group, NULL, &n);
        account.groups = mem_alloc(((size_t)n + 1) * sizeof(gid_t));
        if (n > 0 && getgrouplist(user->pw_name, group, account.groups, &n) > 0)
                account.n_groups = (size_t)n;
        return account;
}

/* The units give their user no capability. */
struct account
account_service(void)
{
        const struct passwd *user = getpwnam(ACCOUNT_SERVICE_USER);

        return user == NULL || user->pw_uid == geteuid() ? account_this() : account_of(user, user->pw_gid);
}

void
account_clear(struct account *account)
{
        free(account->groups);
        account->groups = NULL;
        account->n_groups = 0;
}

int
account_try(const struct account *account, const char *path, int mode)
{
        pid_t child;
        int status;

        if (account->user == geteuid())
                return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno;
        if (geteuid() != 0)
                return ACCOUNT_CANNOT_TRY;
        child = fork();
        if (child == 0) {
                if (setgroups(account->n_groups, account->groups) != 0 || setgid(account->group) != 0 ||
                    setuid(account->user) != 0)
                        _exit(ACCOUNT_CANNOT_TRY);
                _exit(faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
                return ACCOUNT_CANNOT_TRY;
        return WEXITSTATUS(status);
}

static int
is_member(const struct account *account, gid_t group)
{
        for (size_t i = 0; i < account->n_groups; i++) {
                if (account->groups[i] == group)
                        return 1;
        }
        return account->group == group;
}

_Static_assert(R_OK == S_IROTH && W_OK == S_IWOTH && X_OK == S_IXOTH,
               "access() and modes have the same bits");

/* A path that this process cannot look at is not judged. */
static int
judge_by_mode(const struct account *account, const char *path, int mode)
{
        mode_t bits = (mode_t)mode;
        struct stat st;

        if (stat(path, &st) != 0)
                return errno == EACCES ? 0 : errno;
        if (st.st_uid == account->user)
                bits <<= 6;
        else if (is_member(account, st.st_gid))
                bits <<= 3;
        return (st.st_mode & bits) == bits ? 0 : EACCES;
}

int
account_access(const struct account *account, const char *path, int mode)
{
        int result = account_try(account, path, mode);

        return result == ACCOUNT_CANNOT_TRY ? judge_by_mode(account, path, mode) : result;
}

/* Write the name of a group, or its number. */
static const char *
group_name(gid_t gid, char number[16])
{
        const struct group *group = getgrgid(gid);

        (void)snprintf(number, 16, "%u", (unsigned)gid);
        return group == NULL ? number : group->gr_name;
}

/*
 * A group that others may be members of is left as it is: they would lose their access, or gain one. But what
 * is in the directory of the configuration is Gatepost's own, whatever group a copy has left there.
 */
char *
account_make_way(const struct account *account, const char *name, const char *path, const char *bits,
                 const char *restart)
{
        mode_t needed = (strchr(bits, 'r') != NULL ? S_IRGRP : 0) | (strchr(bits, 'x') != NULL ? S_IXGRP : 0);
        char number[16],
            *real = realpath(path, NULL); /* a link in that directory may lead to a file of others */
        int is_own = real != NULL && unit_is_below(real, SYSCONFDIR "/gatepost");
        struct stat st;

        free(real);
        if (stat(path, &st) != 0)
                return mem_printf("let %s access %s", name, path);
        if (st.st_uid == account->user)
                return mem_printf("chmod u+%s %s", bits, path);
        if (st.st_gid == 0 || st.st_gid == account->group || is_own)
                return mem_printf("chgrp %s %s && chmod g+%s %s",
                                  account->group == ACCOUNT_UNKNOWN_GROUP
                                      ? name
                                      : group_name(account->group, number),
                                  path, bits, path);
        if ((st.st_mode & needed) != needed)
                return mem_printf("setfacl -m u:%s:%s %s", name, bits, path);
        if (getpwuid(account->user) != NULL && getgrgid(st.st_gid) != NULL)
                return mem_printf("usermod -aG %s %s, and then: %s", group_name(st.st_gid, number), name,
                                  restart);
        return mem_printf("SupplementaryGroups=%s in the unit, and then: %s", group_name(st.st_gid, number),
                          restart);
}

#define MAX_LINKS 40 /* in a path, as the kernel's limit */

static int
is_closed(const struct account *account, const char *directory)
{
        struct stat st;

        return stat(directory, &st) == 0 && S_ISDIR(st.st_mode) &&
               account_access(account, directory, X_OK) == EACCES;
}

/* Go from a directory, "" for the root, whose path has no links, to a name in it. Returns whether it fits. */
static int
enter(char directory[PATH_MAX], const char *name, size_t len)
{
        size_t at = strlen(directory);
        char *last = strrchr(directory, '/');

        if (len == 1 && *name == '.')
                return 1;
        if (len == 2 && strncmp(name, "..", len) == 0) {
                if (last != NULL)
                        *last = '\0';
                return 1;
        }
        if (at + 1 + len >= PATH_MAX)
                return 0;
        directory[at] = '/';
        *(char *)mempcpy(directory + at + 1, name, len) = '\0';
        return 1;
}

/* Go along an absolute path as the kernel does, with each link replaced by its text. */
static int
find_closed(const struct account *account, char **path, char directory[PATH_MAX])
{
        const char *rest = *path;
        char target[PATH_MAX], *whole;
        int n_links = 0;

        *directory = '\0';
        while (rest += strspn(rest, "/"), *rest != '\0') {
                size_t len = strcspn(rest, "/"), above = strlen(directory);
                ssize_t n;

                if (is_closed(account, above == 0 ? "/" : directory))
                        return 1;
                if (!enter(directory, rest, len))
                        return 0;
                rest += len;
                n = readlink(directory, target, sizeof(target));
                if (n <= 0)
                        continue;
                if (n_links++ == MAX_LINKS || (size_t)n == sizeof(target))
                        return 0;
                directory[*target == '/' ? 0 : above] = '\0';
                whole = mem_printf("%.*s%s", (int)n, target, rest);
                free(*path);
                rest = *path = whole;
        }
        return 0;
}

int
account_find_closed(const struct account *account, const char *path, char directory[PATH_MAX])
{
        char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
        char *whole = here == NULL ? mem_strdup(path) : mem_printf("%s/%s", here, path);
        int result = find_closed(account, &whole, directory);

        if (result && *directory == '\0')
                (void)strcpy(directory, "/");
        free(whole);
        free(here);
        return result;
}
