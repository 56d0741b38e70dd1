#include "sandbox/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/secrets.h"

#define FIRST_SIZE 65536

char *
file_read(const char *path, size_t max, size_t *len, struct error *error)
{
        FILE *in = fopen(path, "re");
        char *text = NULL;
        size_t size = 0;

        *len = 0;
        if (in == NULL) {
                (void)error_set(error, "%s", strerror(errno));
                return NULL;
        }
        do {
                size = size == 0 ? FIRST_SIZE : size * 2;
                text = mem_resize(text, size, 1);
                *len += fread(text + *len, 1, size - *len, in);
        } while (*len == size && size < max);
        if (ferror(in) || *len == size) {
                (void)error_set(error, "%s", ferror(in) ? strerror(errno) : "too large");
                secrets_free(text, *len);
                text = NULL;
        }
        (void)fclose(in);
        return text;
}

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

/* Make the new name durable: fsync of the file does not cover its directory entry. */
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
                result = error_set(error, "cannot write %s: %s", path, strerror(errno));
                if (fd >= 0)
                        (void)unlink(temporary);
        }
        free(temporary);
        return result;
}
