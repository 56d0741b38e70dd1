#include "base/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"

#define LOCK "lock"

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
        const char *hint = unit_hint(path, reason);

        (void)error_set(error, "cannot %s %s: %s%s%s", what, path, strerror(reason),
                        *hint == '\0' ? "" : "; ", hint);
        errno = reason;
        return -1;
}

/* As root: give what is new to the owner of the directory in which it is. */
static void
hand_over(int fd, const struct stat *above)
{
        if (geteuid() == 0 && above->st_uid != 0)
                (void)!fchown(fd, above->st_uid, above->st_gid);
}

static void
hand_over_directory(const char *path)
{
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat above;

        if (fd >= 0 && fstatat(fd, "..", &above, 0) == 0)
                hand_over(fd, &above);
        if (fd >= 0)
                (void)close(fd);
}

/* A directory that exists may be new as well: its creator may have died before the sync. */
int
directory_make(const char *path, struct error *error)
{
        int is_new = mkdir(path, 0700) == 0;

        if (!is_new && errno != EEXIST)
                return directory_fail(error, "create the directory", path, errno);
        if (is_new)
                hand_over_directory(path);
        if (sync_above(path) != 0 && is_new)
                return directory_fail(error, "sync the directory above", path, errno);
        return 0;
}

int
directory_create(int directory, const char *name, int flags)
{
        int fd = openat(directory, name, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct stat status, above;

        /* One that exists may be a hard link to a file that is somewhere else. */
        if (fd >= 0 && fstat(fd, &status) == 0 && status.st_nlink == 1 && fstat(directory, &above) == 0)
                hand_over(fd, &above);
        return fd;
}

int
directory_lock(int directory)
{
        int lock = directory_create(directory, LOCK, O_RDWR), reason;

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
