/*
 * Make the disk of a state directory fail, or be slow: of the calls on it, FAIL_STATE in a thousand fail, with EIO or ENOSPC, and
 * each read of more than a block takes SLOW_STATE seconds. With READ_ONLY_STATE, nothing can be written, renamed or deleted.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

static int
is_of_a_state(int fd)
{
        char link[64], path[4096];
        ssize_t n;

        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return 0;
        path[n] = '\0';
        return strstr(path, "/state") != NULL;
}

/* Whether this call is to fail; then errno is set. */
static int
fails(int fd, int changes)
{
        const char *share = getenv("FAIL_STATE");
        unsigned random;

        if (!is_of_a_state(fd))
                return 0;
        errno = EROFS;
        if (changes && getenv("READ_ONLY_STATE") != NULL)
                return 1;
        if (share == NULL || getrandom(&random, sizeof(random), 0) != sizeof(random) ||
            random % 1000 >= (unsigned)atoi(share))
                return 0;
        errno = random & 4096 ? EIO : ENOSPC;
        return 1;
}

ssize_t
pread(int fd, void *bytes, size_t len, off_t offset)
{
        const char *slow = getenv("SLOW_STATE");

        if (slow != NULL && len != 512 && is_of_a_state(fd))
                (void)sleep((unsigned)atoi(slow));
        return fails(fd, 0) ? -1
                            : NEXT(ssize_t(*)(int, void *, size_t, off_t), "pread")(fd, bytes, len, offset);
}

ssize_t
pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
        return fails(fd, 1)
                   ? -1
                   : NEXT(ssize_t(*)(int, const void *, size_t, off_t), "pwrite")(fd, bytes, len, offset);
}

int
fsync(int fd)
{
        return fails(fd, 0) ? -1 : NEXT(int (*)(int), "fsync")(fd);
}

int
openat(int directory, const char *name, int flags, ...)
{
        va_list args;
        mode_t mode;

        va_start(args, flags);
        mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
        va_end(args);
        if (strcmp(name, "lock") != 0 && strcmp(name, "key") != 0 && fails(directory, (flags & O_CREAT) != 0))
                return -1;
        return NEXT(int (*)(int, const char *, int, ...), "openat")(directory, name, flags, mode);
}

int
unlinkat(int directory, const char *name, int flags)
{
        return fails(directory, 1)
                   ? -1
                   : NEXT(int (*)(int, const char *, int), "unlinkat")(directory, name, flags);
}

int
renameat(int from_directory, const char *from, int to_directory, const char *to)
{
        return fails(from_directory, 1) ? -1
                                        : NEXT(int (*)(int, const char *, int, const char *),
                                               "renameat")(from_directory, from, to_directory, to);
}
