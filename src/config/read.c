#include "config/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/mem.h"
#include "config/secrets.h"

#define FILE_MAX (1 << 20)
#define ENTRIES_MAX 10000 /* each is compared with all before it, and a reload must not take minutes */

static int
fail(struct problems *problems, const char *reason)
{
        problems_add(problems, 0, "%s", reason);
        return -1;
}

int
read_file(const char *file, struct ini *ini, struct problems *problems)
{
        int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO has nobody who writes */
        FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
        struct stat st;
        char *text;
        size_t len;
        int failed;

        if (in == NULL) {
                (void)fail(problems, strerror(errno));
                if (fd >= 0)
                        (void)close(fd);
                return -1;
        }
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
                (void)fclose(in);
                return fail(problems, "is not a regular file");
        }
        (void)setvbuf(in, NULL, _IONBF, 0); /* no copy of a secret stays in a buffer */
        text = mem_alloc(FILE_MAX + 1);
        len = fread(text, 1, FILE_MAX + 1, in);
        failed = ferror(in);
        (void)fclose(in);
        if (!failed && len <= FILE_MAX)
                ini_parse(text, len, ini, problems);
        ini->mode = st.st_mode;
        secrets_free(text, len);
        if (failed)
                return fail(problems, "cannot be read");
        if (len > FILE_MAX)
                return fail(problems, "is larger than 1MiB");
        if (ini->n > ENTRIES_MAX)
                return fail(problems, "has more than 10000 headings and options");
        if (ini->n == 0 && problems->n == 0)
                return fail(problems, "is empty; start from the sample gatepost.conf");
        return 0;
}
