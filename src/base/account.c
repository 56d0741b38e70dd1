#include "base/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

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
