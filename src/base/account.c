#include "base/account.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
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

int
account_may_write(const struct account *account, const char *directory, const struct stat *st)
{
        if (account->user == geteuid())
                return faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0;
        if (st->st_uid == account->user)
                return (st->st_mode & S_IWUSR) != 0;
        return (st->st_mode & (st->st_gid == account->group ? S_IWGRP : S_IWOTH)) != 0;
}
