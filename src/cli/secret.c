#include "cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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

static int
write_secret(const char *file)
{
        uint8_t random[RANDOM_BYTES];
        char text[2 * RANDOM_BYTES + 2];
        int fd, result = 0;

        if (RAND_bytes(random, sizeof(random)) != 1) {
                fprintf(stderr, "gatepost secret new: no random bytes available\n");
                return EX_OSERR;
        }
        bytes_to_hex(random, sizeof(random), text);
        text[2 * RANDOM_BYTES] = '\n';
        fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) {
                result = errno == EEXIST ? EX_CANTCREAT : errno == EACCES ? EX_NOPERM : EX_CANTCREAT;
                fprintf(stderr, "gatepost secret new: %s: %s\n", file,
                        errno == EEXIST ? "exists, not overwritten" : strerror(errno));
        } else if (write(fd, text, 2 * RANDOM_BYTES + 1) != 2 * RANDOM_BYTES + 1 || let_group_read(fd) != 0 ||
                   fsync(fd) != 0 || close(fd) != 0) {
                fprintf(stderr, "gatepost secret new: %s: %s\n", file, strerror(errno));
                (void)unlink(file);
                result = EX_IOERR;
        }
        OPENSSL_cleanse(random, sizeof(random));
        OPENSSL_cleanse(text, sizeof(text));
        return result;
}

int
secret_run(const struct command_context *context, int argc, char **argv)
{
        static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
        int option;

        while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                return command_misused(context, "wrong option");
        }
        if (argc - optind != 1)
                return command_misused(context, "needs the file to create");
        return write_secret(argv[optind]);
}
