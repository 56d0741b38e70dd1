#include "config/secrets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/unit.h"
#include "model/signature.h"

int
secrets_check_mode(mode_t mode, const char *path, struct error *error)
{
        if (!S_ISREG(mode))
                return error_set(error, "%s is not a regular file", path);
        if (mode & (S_IROTH | S_IWOTH))
                return error_set(
                    error, "%s holds a secret, but others can %s it (mode %04o); correct it: chmod o= %s",
                    path, mode & S_IROTH ? "read" : "write", (unsigned)(mode & 07777), path);
        return 0;
}

int
secrets_check_path(const char *path, struct error *error)
{
        struct stat st;

        if (path[0] == '/' || stat(path, &st) == 0)
                return 0;
        return error_set(error,
                         "no such file: %s; the value is not shown because it may be the secret itself; give "
                         "an absolute path",
                         strerror(errno));
}

/* Open without blocking on a FIFO, and check the mode of the open file, which the path may no longer name. */
static int
open_checked(const char *path, struct stat *st, struct error *error)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result;

        if (fd < 0)
                return error_set(error, "cannot open %s: %s%s", path, strerror(errno),
                                 unit_remedy(path, errno));
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
        return errno == EACCES ? 0
                               : error_set(error, "cannot open %s: %s%s", path, strerror(errno),
                                           unit_remedy(path, errno));
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
                (void)error_set(
                    error, "the secret in %s is shorter than %zu bytes; make one: gatepost secret new FILE",
                    path, min_len);
        else if (memchr(secret, '\0', *len) != NULL)
                (void)error_set(error, "%s has a NUL byte; is it a text file?", path);
        else {
                secret[*len] = '\0';
                return secret;
        }
        secrets_free(secret, SECRETS_MAX);
        return NULL;
}

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static int
is_pem(const char *secret)
{
        return strncmp(secret, "-----BEGIN ", strlen("-----BEGIN ")) == 0;
}

static int
may_be_secret(const struct dirent *entry)
{
        return entry->d_name[0] != '.' && entry->d_type != DT_DIR;
}

/* Return the path of a file of the same directory with a similar name, to be freed, or NULL. */
static char *
find_similar(const char *path)
{
        const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1, *closest;
        char *directory = slash == NULL ? mem_strdup(".") : mem_strndup(path, (size_t)(name - path));
        struct dirent **entries = NULL;
        int found = scandir(directory, &entries, may_be_secret, alphasort);
        size_t n = found < 0 ? 0 : (size_t)found;
        const char **names = mem_alloc((n + 1) * sizeof(*names));
        char *similar;

        for (size_t i = 0; i < n; i++)
                names[i] = entries[i]->d_name;
        closest = text_closest(name, names, n);
        similar = closest == NULL ? NULL : mem_printf("%.*s%s", (int)(name - path), path, closest);
        while (n > 0)
                free(entries[--n]);
        free(entries);
        free(names);
        free(directory);
        return similar;
}

/*
 * Explain that there is no such file. A name that may be the secret itself is not shown. If the name may be
 * misspelt, a new secret would not be that of the webhook; but it may also be that of another source, which
 * has none yet. What is missing in /run is put there by systemd or a container, not by an admin.
 */
static void
set_missing(const char *path, struct error *error)
{
        int is_made = !unit_is_below(path, "/run");
        char target[256], *similar, *copy;
        const char *directory;
        ssize_t len;

        if (strpbrk(path, "/.") == NULL && strlen(path) >= SIGNATURE_SECRET_MIN) {
                (void)error_set(
                    error, "no such file; its name is not shown because it may be the secret itself, which "
                           "belongs into a file, so that others do not see it");
                return;
        }
        len = readlink(path, target, sizeof(target));
        if (len > 0) {
                (void)error_set(error, "cannot open %s: it is a symbolic link to %.*s, which does not exist",
                                path, (int)len, target);
                return;
        }
        copy = mem_strdup(path);
        directory = dirname(copy);
        similar = find_similar(path);
        if (is_made && access(directory, F_OK) != 0)
                (void)error_set(error,
                                "cannot open %s: %s; its directory is missing: correct the path, or make the "
                                "directory: install -d -m 2750 -g gatepost %s",
                                path, strerror(ENOENT), directory);
        else if (similar != NULL)
                (void)error_set(error, "cannot open %s: %s; correct it: write %s if that is meant%s%s", path,
                                strerror(ENOENT), similar,
                                is_made ? ", or make a new secret: gatepost secret new " : "",
                                is_made ? path : "");
        else
                (void)error_set(error, "cannot open %s: %s%s%s", path, strerror(ENOENT),
                                is_made ? "; make one: gatepost secret new " : "", is_made ? path : "");
        free(similar);
        free(copy);
}

/*
 * Editors add byte order marks and empty lines unseen. The sender has neither, so every signature would fail.
 */
char *
secrets_read_signing(const char *path, size_t *len, struct stat *st, struct error *error)
{
        char *secret;

        if (access(path, F_OK) != 0 && errno == ENOENT &&
            (path[0] != '/' || *unit_remedy(path, ENOENT) == '\0')) {
                set_missing(path, error);
                return NULL;
        }
        secret = secrets_read(path, SIGNATURE_SECRET_MIN, len, st, error);
        if (secret == NULL)
                return NULL;
        if (strncmp(secret, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
                (void)error_set(error, "%s begins with a byte order mark; save it as UTF-8 without one",
                                path);
        else if (is_pem(secret))
                (void)
                    error_set(error,
                              "%s is in PEM, as a private key or a certificate; a signing secret is one line "
                              "of text, by which the service signs",
                              path);
        else if (strpbrk(secret, "\r\n") != NULL)
                (void)error_set(error,
                                "%s has more than one line; a secret is one line, and each of several has a "
                                "file of its own",
                                path);
        else
                return secret;
        secrets_free(secret, *len);
        return NULL;
}

/* Whether a secret is a placeholder, of the sample or of anybody's template, or the dots that hide one. */
static int
is_placeholder(const char *secret)
{
        static const char *const words[] = {"at least sixteen bytes",
                                            "changeme",
                                            "change-me",
                                            "change_me",
                                            "replace-me",
                                            "replace_me",
                                            "replaceme",
                                            "your-",
                                            "your_",
                                            "placeholder",
                                            "<secret>"};
        static const char dots[] = "*\u2022\u25cf"; /* the bytes of bullets are no letters */

        for (size_t i = 0; i < ARRAY_LEN(words); i++) {
                if (strcasestr(secret, words[i]) != NULL)
                        return 1;
        }
        if (strncasecmp(secret, "your", strlen("your")) == 0 || secret[strspn(secret, dots)] == '\0')
                return 1;
        return secret[strspn(secret, (char[]){secret[0], '\0'})] == '\0'; /* one letter, again and again */
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/*
 * Whether a secret follows its name: NAME=value, as in a file with variables, or name: value, as in a header
 * or in YAML. Base64 has a `=` only at its end and no colon, and a random text rarely begins with letters of
 * one word and either.
 */
static int
follows_name(const char *secret, char separator)
{
        static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-0123456789";
        static const char letters[] = LETTERS "._-";
        size_t capital, letter, len;

        if (strncmp(secret, "export ", strlen("export ")) == 0)
                secret += strlen("export ");
        capital = strspn(secret, capitals);
        letter = strspn(secret, letters);
        len = capital > letter ? capital : letter;
        if (len < 3 || isdigit((unsigned char)secret[0]))
                return 0;
        secret += len;
        secret += strspn(secret, " ");
        return *secret == separator && secret[1 + strspn(secret + 1, "= ")] != '\0';
}

/* Whether a text is $NAME, ${NAME} or $(command), which a shell would have replaced. */
static int
is_expansion(const char *secret)
{
        size_t len = strlen(secret);

        if (secret[0] != '$' || len < 2)
                return 0;
        if (secret[1] == '{' || secret[1] == '(')
                return secret[len - 1] == (secret[1] == '{' ? '}' : ')');
        return !isdigit((unsigned char)secret[1]) &&
               secret[1 + strspn(secret + 1, LETTERS "_0123456789")] == '\0';
}

/* Whether a text ends with a comment: a blank, #, and a word. */
static int
has_comment(const char *secret)
{
        const char *mark = strstr(secret, " #");
        size_t len;

        if (mark == NULL)
                return 0;
        mark += 2;
        mark += strspn(mark, "# ");
        len = strspn(mark, LETTERS);
        return len > 0 && strchr(" ,:", mark[len]) != NULL;
}

/* Return what makes a text doubtful that was copied with the characters around it, or NULL. */
static const char *
doubt_of_ends(const char *secret)
{
        static const char quotes[] = "is in quotes, which belong to it";
        static const char braces[] =
            "is in braces or brackets, as JSON, which belong to it; leave only the value";
        static const struct {
                char first, last;
                const char *doubt;
        } pairs[] = {
            {'"', '"', quotes}, {'\'', '\'', quotes},
            {'`', '`', quotes}, {'{', '}', braces},
            {'[', ']', braces}, {'<', '>', "is in angle brackets, which belong to it; leave only the value"},
        };
        size_t len = strlen(secret);

        for (size_t i = 0; i < ARRAY_LEN(pairs) && len > 1; i++) {
                if (secret[0] == pairs[i].first && secret[len - 1] == pairs[i].last)
                        return pairs[i].doubt;
        }
        if (len > 1 && strcmp(secret + len - 2, "\\n") == 0)
                return "ends with a backslash and the letter n, which belong to it";
        if (len > 1 && secret[len - 1] == ',')
                return "ends with a comma, which belongs to it; leave only the value";
        return NULL;
}

/* Return what makes a text doubtful that is, or was copied with, something else than a secret, or NULL. */
static const char *
doubt_of_form(const char *secret)
{
        if (follows_name(secret, '='))
                return "begins with a name and =, which belong to it; leave only the value";
        if (follows_name(secret, ':'))
                return "begins with a name and a colon, which belong to it; leave only the value";
        if (is_pem(secret))
                return "is in PEM, as a private key or a certificate; use the text that the service knows";
        if (is_expansion(secret))
                return "is a variable or a command, as for a shell, which is not replaced by its value";
        if (has_comment(secret))
                return "ends with a comment, which belongs to it; leave only the value";
        if (secret[0] == '/' && access(secret, F_OK) == 0)
                return "is the path of a file, not its content";
        return doubt_of_ends(secret);
}

static int
has_blank_end(const char *secret)
{
        size_t len = strlen(secret);

        return len > 0 && (isspace((unsigned char)secret[0]) || isspace((unsigned char)secret[len - 1]));
}

#define BLANK_END "begins or ends with a blank, which belongs to it"

const char *
secrets_doubt(const char *secret)
{
        if (is_placeholder(secret))
                return "is a placeholder, which anybody can guess; register a new one: gatepost secret new "
                       "FILE";
        return has_blank_end(secret) ? BLANK_END : doubt_of_form(secret);
}

const char *
secrets_doubt_api_key(const char *key)
{
        return is_placeholder(key) ? "is a placeholder; use one that the service has issued"
                                   : doubt_of_form(key);
}

const char *
secrets_doubt_password(const char *password)
{
        if (strncmp(password, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
                return "begins with a byte order mark, which belongs to it; save it as UTF-8 without one";
        if (!is_pem(password) && strpbrk(password, "\r\n") != NULL)
                return "has more than one line, which all belong to it; leave only the value";
        if (strstr(password, "LoginModule required") != NULL)
                return "is a sasl.jaas.config of Java; leave only the password";
        /* The password for Azure Event Hubs: Endpoint=sb://... */
        if (strncmp(password, "Endpoint=sb://", strlen("Endpoint=sb://")) == 0)
                return NULL;
        return has_blank_end(password) ? BLANK_END : doubt_of_form(password);
}

int
secrets_check_api_key(const char *key, struct error *error)
{
        if (strncasecmp(key, "Bearer ", strlen("Bearer ")) == 0)
                return error_set(error,
                                 "the API key begins with the word Bearer, which the service would take "
                                 "for a part of it: it is sent in x-api-key; leave only the key");
        for (const char *c = key; *c != '\0'; c++) {
                if (*c <= 0x20 || *c >= 0x7f)
                        return error_set(error,
                                         "the API key has a character that is not allowed in a header, "
                                         "such as a blank; the key must be alone, on one line");
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
