#include "spool/spool_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/log.h"
#include "base/mem.h"

#define SUFFIX ".spool"
#define DAMAGED ".damaged"
#define DIGITS 16

struct spool_directory {
        char *path;
        int fd;
        int lock; /* -1: not locked */
};

static int
take_lock(struct spool_directory *directory, struct error *error)
{
        directory->lock = directory_lock(directory->fd);
        if (directory->lock >= 0)
                return 0;
        if (errno == EWOULDBLOCK)
                return error_set(error,
                                 "%s is in use by another process: a running gatepostd, which drains it "
                                 "itself, or gatepost spool drain",
                                 directory->path);
        return directory_fail(error, "lock the file lock in", directory->path, errno);
}

struct spool_directory *
spool_directory_open(const char *path, int exclusive, struct error *error)
{
        struct spool_directory *directory = mem_alloc(sizeof(*directory));

        directory->lock = -1;
        directory->path = mem_strdup(path);
        directory->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory->fd < 0)
                (void)directory_fail(error, "open the directory", path, errno);
        else if (!exclusive || take_lock(directory, error) == 0)
                return directory;
        spool_directory_close(directory);
        return NULL;
}

void
spool_directory_close(struct spool_directory *directory)
{
        if (directory == NULL)
                return;
        if (directory->lock >= 0)
                (void)close(directory->lock);
        if (directory->fd >= 0)
                (void)close(directory->fd);
        free(directory->path);
        free(directory);
}

int
spool_directory_fd(const struct spool_directory *directory)
{
        return directory->fd;
}

const char *
spool_directory_path(const struct spool_directory *directory)
{
        return directory->path;
}

char *
spool_directory_name(uint64_t number, char name[SPOOL_NAME_SIZE])
{
        (void)snprintf(name, SPOOL_NAME_SIZE, "%016" PRIx64 SUFFIX, number);
        return name;
}

char *
spool_directory_damaged_name(uint64_t number, char name[SPOOL_NAME_SIZE])
{
        (void)snprintf(name, SPOOL_NAME_SIZE, "%016" PRIx64 SUFFIX DAMAGED, number);
        return name;
}

/* Read the digits with which the name of a segment begins. */
static int
parse_digits(const char *name, uint64_t *number)
{
        *number = 0;
        for (size_t i = 0; i < DIGITS; i++) {
                const char *digits = "0123456789abcdef";
                const char *found = name[i] == '\0' ? NULL : strchr(digits, name[i]);

                if (found == NULL)
                        return -1;
                *number = *number << 4 | (uint64_t)(found - digits);
        }
        return *number >= 1 && *number <= SPOOL_NUMBER_MAX ? 0 : -1;
}

int
spool_directory_parse(const char *name, uint64_t *number)
{
        return parse_digits(name, number) == 0 && strcmp(name + DIGITS, SUFFIX) == 0 ? 0 : -1;
}

static int
is_damaged_name(const char *name, uint64_t *number)
{
        return parse_digits(name, number) == 0 && strcmp(name + DIGITS, SUFFIX DAMAGED) == 0;
}

static int
by_number(const void *a, const void *b)
{
        uint64_t x = ((const struct spool_file *)a)->number, y = ((const struct spool_file *)b)->number;

        return x < y ? -1 : x > y;
}

static void
add_file(struct spool_file **files, size_t *n, uint64_t number, const struct stat *status)
{
        *files = mem_resize(*files, *n + 1, sizeof(**files));
        (*files)[(*n)++] = (struct spool_file){number, (uint64_t)status->st_size};
}

static void
note_file(const struct spool_directory *directory, const char *name, int log, struct spool_listing *listing)
{
        struct stat status;
        uint64_t number;
        char quoted[LOG_QUOTED_SIZE];
        int is_segment = spool_directory_parse(name, &number) == 0;
        int is_damaged = !is_segment && is_damaged_name(name, &number);
        int is_file =
            fstatat(directory->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);

        if (is_damaged && is_file) {
                add_file(&listing->damaged, &listing->n_damaged, number, &status);
                listing->damaged_bytes += (uint64_t)status.st_size;
        } else if (is_segment && is_file) {
                add_file(&listing->segments, &listing->n_segments, number, &status);
        } else if (name[0] != '.' && strcmp(name, "lock") != 0 && strcmp(name, "lost+found") != 0) {
                listing->n_others++;
                if (log)
                        log_warning("a file in the spool is not a segment and is ignored file=%s",
                                    log_quote(name, quoted));
        }
        if (is_file && (is_segment || is_damaged) && number > listing->last)
                listing->last = number;
}

int
spool_directory_list(const struct spool_directory *directory, int log, struct spool_listing *listing,
                     struct error *error)
{
        int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;
        int failure;

        memset(listing, 0, sizeof(*listing));
        if (entries == NULL) {
                (void)error_set(error, "cannot read the directory %s: %s", directory->path, strerror(errno));
                if (fd >= 0)
                        (void)close(fd);
                return -1;
        }
        while (errno = 0, (entry = readdir(entries)) != NULL)
                note_file(directory, entry->d_name, log, listing);
        failure = errno;
        (void)closedir(entries);
        if (failure != 0) {
                spool_listing_free(listing);
                return error_set(error, "cannot read the directory %s: %s", directory->path,
                                 strerror(failure));
        }
        if (listing->n_segments > 1)
                qsort(listing->segments, listing->n_segments, sizeof(*listing->segments), by_number);
        if (listing->n_damaged > 1)
                qsort(listing->damaged, listing->n_damaged, sizeof(*listing->damaged), by_number);
        return 0;
}

void
spool_listing_free(struct spool_listing *listing)
{
        free(listing->segments);
        free(listing->damaged);
        memset(listing, 0, sizeof(*listing));
}

int
spool_directory_is_at(const struct spool_directory *directory, const char *path)
{
        struct stat opened, there;

        return fstat(directory->fd, &opened) == 0 && stat(path, &there) == 0 &&
               opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

int
spool_directory_is_in_place(const struct spool_directory *directory)
{
        return spool_directory_is_at(directory, directory->path);
}

char *
spool_directory_find(const struct spool_directory *directory)
{
        char link[40], target[PATH_MAX];
        ssize_t len;

        if (spool_directory_is_in_place(directory))
                return mem_strdup(directory->path);
        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", directory->fd);
        len = readlink(link, target, sizeof(target) - 1);
        if (len <= 0)
                return NULL;
        target[len] = '\0';
        return spool_directory_is_at(directory, target) ? mem_strdup(target) : NULL;
}

int
spool_directory_create(const struct spool_directory *directory, uint64_t number)
{
        char name[SPOOL_NAME_SIZE];

        return directory_create(directory->fd, spool_directory_name(number, name), O_WRONLY | O_EXCL);
}

int
spool_directory_sync(const struct spool_directory *directory)
{
        return fsync(directory->fd);
}

int
spool_directory_remove(const struct spool_directory *directory, uint64_t number)
{
        char name[SPOOL_NAME_SIZE];

        return unlinkat(directory->fd, spool_directory_name(number, name), 0);
}

int
spool_directory_put_aside(const struct spool_directory *directory, uint64_t number)
{
        char name[SPOOL_NAME_SIZE], aside[SPOOL_NAME_SIZE];

        return renameat(directory->fd, spool_directory_name(number, name), directory->fd,
                        spool_directory_damaged_name(number, aside));
}
