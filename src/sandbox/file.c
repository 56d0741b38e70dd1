#include "sandbox/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static int
write_all(int fd, const char *data, size_t len)
{
        while (len > 0) {
                ssize_t n = write(fd, data, len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -1;
                data += n;
                len -= (size_t)n;
        }
        return 0;
}

/* The name itself is on disk only when the directory is. */
static void
sync_directory(const char *path)
{
        char *copy = mem_strdup(path);
        int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0) {
                (void)fsync(fd);
                (void)close(fd);
        }
        free(copy);
}

int
file_replace(const char *path, const void *data, size_t len, struct error *error)
{
        char *temporary = mem_printf("%s.XXXXXX", path);
        int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
        int ok = fd >= 0 && write_all(fd, data, len) == 0 && fsync(fd) == 0, result = 0;

        if (fd >= 0)
                ok = close(fd) == 0 && ok;
        if (ok && rename(temporary, path) == 0) {
                sync_directory(path);
        } else {
                result = error_set(error, "%s cannot be written: %s", path, strerror(errno));
                if (fd >= 0)
                        (void)unlink(temporary);
        }
        free(temporary);
        return result;
}
