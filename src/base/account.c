#include "base/account.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
        return (struct account){geteuid(), getegid(), has_capability()};
}

/* The units give their user no capability. */
struct account
account_service(void)
{
        const struct passwd *user = getpwnam(ACCOUNT_SERVICE_USER);

        if (user == NULL || user->pw_uid == geteuid())
                return account_this();
        return (struct account){user->pw_uid, user->pw_gid, 0};
}

/* Return whether the mode gives an account these permissions: the bits of others, S_IWOTH and S_IXOTH. */
static int
permits(const struct account *account, const struct stat *st, mode_t bits)
{
        if (st->st_uid == account->user)
                bits <<= 6;
        else if (st->st_gid == account->group)
                bits <<= 3;
        return (st->st_mode & bits) == bits;
}

int
account_may_write(const struct account *account, const char *directory, const struct stat *st)
{
        return account->user == geteuid() ? faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0
                                          : permits(account, st, S_IWOTH | S_IXOTH);
}

/* A directory that this process cannot look at is below one that it may not enter, or is missing. */
static int
is_closed(const struct account *account, const char *directory)
{
        struct stat st;

        if (stat(directory, &st) != 0 || !S_ISDIR(st.st_mode))
                return 0;
        return account->user == geteuid() ? faccessat(AT_FDCWD, directory, X_OK, AT_EACCESS) != 0
                                          : !permits(account, &st, S_IXOTH);
}

int
account_find_closed(const struct account *account, const char *path, char directory[PATH_MAX])
{
        for (const char *end = strchr(path, '/'); end != NULL; end = strchr(end + 1, '/')) {
                size_t len = end == path ? 1 : (size_t)(end - path);

                if (len >= PATH_MAX)
                        return 0;
                *(char *)mempcpy(directory, path, len) = '\0';
                if (is_closed(account, directory))
                        return 1;
        }
        return 0;
}
