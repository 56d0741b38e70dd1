#include "base/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/account.h"
#include "base/mem.h"
#include "base/unit.h"

/* Sync the directory above, in which the name is. */
static int
sync_above(const char *path)
{
        char *copy = mem_strdup(path);
        int above = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int result = above >= 0 && fsync(above) == 0 ? 0 : -1;
        int reason = errno;

        if (above >= 0)
                (void)close(above);
        free(copy);
        errno = reason;
        return result;
}

int
directory_fail(struct error *error, const char *what, const char *path, int reason)
{
        const struct account account = account_this();
        const char *remedy = unit_remedy_for_directory(path, reason);
        char closed[PATH_MAX];

        if (reason == EACCES && *remedy == '\0' && account_find_closed(&account, path, closed))
                (void)error_set(error, "cannot %s %s: %s; its user may not enter %s", what, path,
                                strerror(reason), closed);
        else
                (void)error_set(error, "cannot %s %s: %s%s", what, path, strerror(reason), remedy);
        errno = reason;
        return -1;
}

/* A directory that exists may be new as well: its creator may have died before the sync. */
int
directory_make(const char *path, struct error *error)
{
        int is_new = mkdir(path, 0700) == 0;

        if (!is_new && errno != EEXIST)
                return directory_fail(error, "create the directory", path, errno);
        if (sync_above(path) != 0 && is_new)
                return directory_fail(error, "sync the directory above", path, errno);
        return 0;
}

int
directory_create(int directory, const char *name, int flags)
{
        int fd = openat(directory, name, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct stat status;

        if (fd >= 0 && geteuid() == 0 && fstat(directory, &status) == 0)
                (void)!fchown(fd, status.st_uid, status.st_gid);
        return fd;
}

int
directory_lock(int directory)
{
        int lock = directory_create(directory, "lock", O_RDWR), reason;

        if (lock < 0)
                return -1;
        /* The directory itself, too: somebody may delete the file. NFS cannot lock directories. */
        if (flock(lock, LOCK_EX | LOCK_NB) == 0 &&
            (flock(directory, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK))
                return lock;
        reason = errno;
        (void)close(lock);
        errno = reason;
        return -1;
}
