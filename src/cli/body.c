#include "cli/body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* All of it, or as much as shows that it is too long. */
static char *
read_stream(FILE *in, size_t max, size_t *len)
{
        char *body = NULL;
        size_t size = 0;

        *len = 0;
        do {
                size = size == 0 ? 65536 : size * 2;
                body = mem_resize(body, size, 1);
                *len += fread(body + *len, 1, size - *len, in);
        } while (*len == size && size <= max);
        return body;
}

static char *
read_file(const char *file, size_t max, const char *too_long, size_t *len, struct error *error)
{
        int is_stdin = strcmp(file, "-") == 0;
        FILE *in = is_stdin ? stdin : fopen(file, "re");
        char *body = NULL;

        errno = in == NULL ? errno : 0;
        if (in != NULL)
                body = read_stream(in, max, len);
        if (in == NULL || ferror(in))
                (void)error_set(error, "%s: %s", is_stdin ? "standard input" : file, strerror(errno));
        else if (*len > max)
                (void)error_set(error, "%s is longer than %s", is_stdin ? "standard input" : file, too_long);
        else {
                if (!is_stdin)
                        (void)fclose(in);
                return body;
        }
        if (in != NULL && !is_stdin)
                (void)fclose(in);
        free(body);
        return NULL;
}

char *
body_read(const char *file, size_t *len, struct error *error)
{
        return read_file(file, BODY_MAX, "a body can be (128 MiB)", len, error);
}

char *
body_read_capture(const char *file, size_t *len, struct error *error)
{
        return read_file(file, BODY_CAPTURE_MAX, "16 MiB; save the one request that it is about, by itself",
                         len, error);
}
