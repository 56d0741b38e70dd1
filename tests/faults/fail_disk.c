/*
 * Make the disk of a spool fail: of the calls that write a segment or sync it or its directory, FAIL_DISK in a thousand
 * fail, with EIO or ENOSPC (FAIL_DISK_FULL: always ENOSPC); a write may have written a part before. Each failure is a line in the file FAIL_DISK_LOG.
 * While the file HUNG_DISK_FILE exists, reading a segment does not return.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

static int
is_of_a_spool(int fd)
{
        char link[64], path[4096];
        ssize_t n;

        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return 0;
        path[n] = '\0';
        return strstr(path, "/spool") != NULL;
}

/* Whether this call is to fail; then errno is set. */
static int
fails(int fd, const char *call)
{
        const char *share = getenv("FAIL_DISK"), *log = getenv("FAIL_DISK_LOG");
        unsigned random;
        char line[64];
        int file;

        if (share == NULL || log == NULL || !is_of_a_spool(fd) ||
            getrandom(&random, sizeof(random), 0) != sizeof(random) || random % 1000 >= (unsigned)atoi(share))
                return 0;
        file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (file >= 0) {
                int len = snprintf(line, sizeof(line), "%s\n", call);

                (void)!write(file, line, (size_t)len);
                (void)close(file);
        }
        errno = random & 4096 && getenv("FAIL_DISK_FULL") == NULL ? EIO : ENOSPC;
        return 1;
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))
#define STEP_US 20000

ssize_t
pread(int fd, void *bytes, size_t n, off_t offset)
{
        const char *file = getenv("HUNG_DISK_FILE");

        while (file != NULL && access(file, F_OK) == 0 && is_of_a_spool(fd))
                (void)usleep(STEP_US);
        return NEXT(ssize_t(*)(int, void *, size_t, off_t), "pread")(fd, bytes, n, offset);
}

ssize_t
writev(int fd, const struct iovec *vectors, int n)
{
        int error;

        if (!fails(fd, "write"))
                return NEXT(ssize_t(*)(int, const struct iovec *, int), "writev")(fd, vectors, n);
        error = errno;
        if (n > 1)
                (void)!NEXT(ssize_t(*)(int, const struct iovec *, int), "writev")(fd, vectors, n / 2);
        errno = error;
        return -1;
}

int
fdatasync(int fd)
{
        return fails(fd, "fdatasync") ? -1 : NEXT(int (*)(int), "fdatasync")(fd);
}

int
fsync(int fd)
{
        return fails(fd, "fsync") ? -1 : NEXT(int (*)(int), "fsync")(fd);
}
