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

_Static_assert(R_OK == S_IROTH && W_OK == S_IWOTH && X_OK == S_IXOTH,
               "access() and modes have the same bits");

int
account_may(const struct account *account, const char *path, const struct stat *st, int mode)
{
        mode_t bits = (mode_t)mode;

        if (account->user == geteuid())
                return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
        if (st->st_uid == account->user)
                bits <<= 6;
        else if (st->st_gid == account->group)
                bits <<= 3;
        return (st->st_mode & bits) == bits;
}

/* A directory that this process cannot look at is below one that it may not enter, or is missing. */
static int
is_closed(const struct account *account, const char *directory)
{
        struct stat st;

        return stat(directory, &st) == 0 && S_ISDIR(st.st_mode) &&
               !account_may(account, directory, &st, X_OK);
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
