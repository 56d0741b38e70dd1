#include "cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/bytes.h"

#define RANDOM_BYTES 32

/* Let the file's group read it if the directory's set-group-id bit has set the group. */
static int
let_group_read(int fd)
{
        struct stat st;

        if (fstat(fd, &st) != 0)
                return -1;
        return st.st_gid == getegid() ? 0 : fchmod(fd, 0640);
}

static const char *file;

static int
run(const char *config_file)
{
        uint8_t random[RANDOM_BYTES];
        char text[2 * RANDOM_BYTES + 2];
        int fd, result = 0;

        (void)config_file;
        if (RAND_bytes(random, sizeof(random)) != 1)
                return command_fail(EX_OSERR, "no random bytes available");
        bytes_to_hex(random, sizeof(random), text);
        text[2 * RANDOM_BYTES] = '\n';
        fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) {
                result = command_fail(errno == EACCES ? EX_NOPERM : EX_CANTCREAT, "%s: %s", file,
                                      errno == EEXIST ? "exists, not overwritten" : strerror(errno));
        } else if (write(fd, text, 2 * RANDOM_BYTES + 1) != 2 * RANDOM_BYTES + 1 || let_group_read(fd) != 0 ||
                   fsync(fd) != 0 || close(fd) != 0) {
                result = command_fail(EX_IOERR, "%s: %s", file, strerror(errno));
                (void)unlink(file);
        }
        OPENSSL_cleanse(random, sizeof(random));
        OPENSSL_cleanse(text, sizeof(text));
        if (result == 0)
                fprintf(
                    stderr,
                    "Give the content of %s to the service as the signing secret, and add to its [source]:\n"
                    "secret_file = %s\n",
                    file, file);
        return result;
}

static const struct command_option options[] = {
    {NULL, "FILE", "create this file", .text = &file},
};

const struct command secret_command = {
    .name = "secret new",
    .help = "create a file with a random secret",
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
