#include "config/secrets.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/mem.h"
#include "model/signature.h"

int
secrets_check_mode(mode_t mode, const char *path, struct error *error)
{
        if (!S_ISREG(mode))
                return error_set(error, "%s is not a regular file", path);
        if (mode & (S_IROTH | S_IWOTH))
                return error_set(error, "%s holds a secret, but others can %s it (mode %04o)", path,
                                 mode & S_IROTH ? "read" : "write", (unsigned)(mode & 07777));
        return 0;
}

int
secrets_check_path(const char *path, struct error *error)
{
        struct stat st;

        if (path[0] == '/' || stat(path, &st) == 0)
                return 0;
        return error_set(
            error, "no such file (not shown, since it may be the secret itself), and not an absolute path");
}

/* Open without blocking on a FIFO, and check the mode of the open file, which the path may no longer name. */
static int
open_checked(const char *path, struct stat *st, struct error *error)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result;

        if (fd < 0 && secrets_check_path(path, error) != 0)
                return -1;
        if (fd < 0)
                return error_set(error, "cannot open %s: %s", path, strerror(errno));
        if (fstat(fd, st) != 0)
                result = error_set(error, "%s: %s", path, strerror(errno));
        else
                result = secrets_check_mode(st->st_mode, path, error);
        if (result == 0)
                return fd;
        (void)close(fd);
        return -1;
}

int
secrets_check_file(const char *path, struct error *error)
{
        struct stat st;

        if (stat(path, &st) == 0)
                return secrets_check_mode(st.st_mode, path, error);
        return errno == EACCES ? 0 : error_set(error, "cannot open %s: %s", path, strerror(errno));
}

/* Read up to size bytes. Return their number, or -1. */
static ssize_t
read_all(int fd, char *buffer, size_t size)
{
        size_t len = 0;

        while (len < size) {
                ssize_t n = read(fd, buffer + len, size - len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -1;
                if (n == 0)
                        break;
                len += (size_t)n;
        }
        return (ssize_t)len;
}

char *
secrets_read(const char *path, size_t min_len, size_t *len, struct stat *st, struct error *error)
{
        struct stat own;
        int fd = open_checked(path, st == NULL ? &own : st, error);
        char *secret;
        ssize_t n;

        if (fd < 0)
                return NULL;
        secret = mem_alloc(SECRETS_MAX + 3);
        n = read_all(fd, secret, SECRETS_MAX + 2);
        (void)close(fd);
        if (n > 0 && secret[n - 1] == '\n')
                n -= n > 1 && secret[n - 2] == '\r' ? 2 : 1;
        *len = n < 0 ? 0 : (size_t)n;
        if (n < 0)
                (void)error_set(error, "cannot read %s: %s", path, strerror(errno));
        else if (*len > SECRETS_MAX)
                (void)error_set(error, "%s is longer than %d bytes, the maximum for a secret", path,
                                SECRETS_MAX);
        else if (*len == 0)
                (void)error_set(error, "%s is empty", path);
        else if (*len < min_len)
                (void)error_set(error, "the secret in %s is shorter than %zu bytes", path, min_len);
        else if (memchr(secret, '\0', *len) != NULL)
                (void)error_set(error, "%s has a NUL byte", path);
        else {
                secret[*len] = '\0';
                return secret;
        }
        secrets_free(secret, SECRETS_MAX);
        return NULL;
}

static int
is_pem(const char *secret)
{
        return strncmp(secret, "-----BEGIN ", strlen("-----BEGIN ")) == 0;
}

char *
secrets_read_signing(const char *path, size_t *len, struct stat *st, struct error *error)
{
        char *secret = secrets_read(path, SIGNATURE_SECRET_MIN, len, st, error);

        if (secret == NULL || (!is_pem(secret) && strpbrk(secret, "\r\n") == NULL))
                return secret;
        if (is_pem(secret))
                (void)error_set(error, "%s is in PEM, but a signing secret is one line of text", path);
        else
                (void)error_set(error, "%s has more than one line, but each secret has a file of its own",
                                path);
        secrets_free(secret, *len);
        return NULL;
}

static int
is_printable_ascii(const char *secret)
{
        while (*secret >= ' ' && *secret <= '~')
                secret++;
        return *secret == '\0';
}

const char *
secrets_doubt(const char *secret)
{
        size_t len = strlen(secret);

        if (strstr(secret, "at least sixteen bytes") != NULL)
                return "is the placeholder of the sample file, which anybody knows";
        if (is_pem(secret))
                return "is in PEM, but a signing secret is one line of text";
        if (len > 0 && (secret[0] == ' ' || secret[len - 1] == ' '))
                return "begins or ends with a blank, which belongs to it";
        if (!is_printable_ascii(secret))
                return "has characters beyond printable ASCII, perhaps invisible ones, which belong to it";
        return NULL;
}

int
secrets_check_api_key(const char *key, struct error *error)
{
        for (const char *c = key; *c != '\0'; c++) {
                if (*c <= 0x20 || *c >= 0x7f)
                        return error_set(error,
                                         "the API key has a blank or another character that is not allowed "
                                         "in a header");
        }
        return 0;
}

void
secrets_free(char *secret, size_t len)
{
        if (secret == NULL)
                return;
        OPENSSL_cleanse(secret, len);
        free(secret);
}
