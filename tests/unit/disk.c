#include "disk.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_OPS 100000

struct disk_op *disk_ops;
size_t disk_n_ops;
char disk_names[DISK_MAX_FILES][64];
unsigned disk_n_files;
int disk_ignores_syncs, disk_ignores_directory_syncs, disk_fails_with;
long disk_fails_at = -1, disk_n_calls;
uint64_t disk_unreadable_from, disk_unreadable_to, disk_n_read;
int disk_unreadable_takes_ms;
atomic_uint disk_n_unreadable;
int disk_lists = -1;
_Atomic int64_t disk_room = -1;
size_t disk_writes_at_once;
int disk_syncs_wait_for = -1;
int disk_undeletable;
const char *_Atomic disk_unopenable;

static atomic_int_fast64_t passed_ms;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char recorded[PATH_MAX];
static int files[DISK_MAX_FILES]; /* descriptors; -1: closed, or not known */

int __real_openat(int directory, const char *name, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __real_writev(int fd, const struct iovec *vectors, int n);
ssize_t __real_pread(int fd, void *bytes, size_t len, off_t offset);
struct dirent *__real_readdir(DIR *directory);
int __real_fallocate(int fd, int mode, off_t offset, off_t len);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_unlinkat(int directory, const char *name, int flags);
int __real_renameat(int from_directory, const char *from, int to_directory, const char *to);
int64_t __real_clock_monotonic_ms(void);

/* Return the number of a file, or -1 if its descriptor is not one. */
static int
file_of(int fd)
{
        for (unsigned i = 0; fd >= 0 && i < disk_n_files; i++) {
                if (files[i] == fd)
                        return (int)i;
        }
        return -1;
}

static int
is_recorded_directory(int fd)
{
        char link[64], path[PATH_MAX];
        ssize_t n;

        if (recorded[0] == '\0')
                return 0;
        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return 0;
        path[n] = '\0';
        return strcmp(path, recorded) == 0;
}

static struct disk_op *
add(enum disk_op_kind kind, unsigned file)
{
        struct disk_op *op = &disk_ops[disk_n_ops++];

        if (disk_n_ops == MAX_OPS || disk_n_files == DISK_MAX_FILES)
                abort();
        *op = (struct disk_op){.kind = kind, .file = file};
        return op;
}

/* Whether this call is to fail; then errno is set. With the mutex held. */
static int
fails(void)
{
        if (disk_n_calls++ != disk_fails_at)
                return 0;
        errno = disk_fails_with;
        return 1;
}

void
disk_record(const char *directory)
{
        if (realpath(directory, recorded) == NULL)
                abort();
        disk_ops = calloc(MAX_OPS, sizeof(*disk_ops));
        disk_n_ops = 0;
        disk_n_files = 0;
        disk_n_calls = 0;
}

void
disk_stop(void)
{
        pthread_mutex_lock(&mutex);
        recorded[0] = '\0';
        for (unsigned i = 0; i < DISK_MAX_FILES; i++)
                files[i] = -1;
        pthread_mutex_unlock(&mutex);
}

void
disk_forget(void)
{
        for (size_t i = 0; i < disk_n_ops; i++)
                free(disk_ops[i].bytes);
        free(disk_ops);
        disk_ops = NULL;
        disk_n_ops = 0;
        disk_n_files = 0;
        disk_fails_at = -1;
}

void
disk_note(enum disk_op_kind kind, unsigned answer)
{
        pthread_mutex_lock(&mutex);
        add(kind, 0)->answer = answer;
        pthread_mutex_unlock(&mutex);
}

void
disk_pass_time(int64_t ms)
{
        atomic_fetch_add(&passed_ms, ms);
}

int64_t
__wrap_clock_monotonic_ms(void)
{
        return __real_clock_monotonic_ms() + atomic_load(&passed_ms);
}

int
__wrap_openat(int directory, const char *name, int flags, ...)
{
        const char *unopenable = atomic_load(&disk_unopenable);
        va_list args;
        mode_t mode = 0;
        int fd = -1;

        if (unopenable != NULL && strcmp(name, unopenable) == 0) {
                errno = EMFILE;
                return -1;
        }
        if (flags & O_CREAT) {
                va_start(args, flags);
                mode = va_arg(args, mode_t);
                va_end(args);
        }
        if (!(flags & O_CREAT) || strstr(name, ".spool") == NULL || !is_recorded_directory(directory))
                return __real_openat(directory, name, flags, mode);
        pthread_mutex_lock(&mutex);
        if (!fails())
                fd = __real_openat(directory, name, flags, mode);
        if (fd >= 0) {
                int known = file_of(fd);

                if (known >= 0)
                        files[known] = -1; /* it was closed */
                (void)snprintf(disk_names[disk_n_files], sizeof(disk_names[0]), "%s", name);
                files[disk_n_files] = fd;
                add(DISK_CREATE, disk_n_files);
                disk_n_files++;
        }
        pthread_mutex_unlock(&mutex);
        return fd;
}

static void
record_write(int file, uint64_t offset, const uint8_t *bytes, size_t len)
{
        struct disk_op *op = add(DISK_WRITE, (unsigned)file);

        op->offset = offset;
        op->len = len;
        op->bytes = malloc(len + 1);
        memcpy(op->bytes, bytes, len);
}

/* Write the first len of the bytes in one piece, and record it. */
static ssize_t
write_recorded(int file, int fd, const struct iovec *vectors, int n, size_t len)
{
        uint8_t *bytes = malloc(len + 1);
        uint64_t offset = (uint64_t)lseek(fd, 0, SEEK_CUR);
        size_t filled = 0;
        ssize_t written;

        for (int i = 0; i < n && filled < len; i++) {
                size_t part = vectors[i].iov_len < len - filled ? vectors[i].iov_len : len - filled;

                memcpy(bytes + filled, vectors[i].iov_base, part);
                filled += part;
        }
        written = __real_write(fd, bytes, len);
        if (written > 0)
                record_write(file, offset, bytes, (size_t)written);
        free(bytes);
        return written;
}

ssize_t
__wrap_writev(int fd, const struct iovec *vectors, int n)
{
        size_t len = 0;
        ssize_t written;
        int file;

        pthread_mutex_lock(&mutex);
        file = file_of(fd);
        for (int i = 0; i < n; i++)
                len += vectors[i].iov_len;
        if (file < 0) {
                pthread_mutex_unlock(&mutex);
                return __real_writev(fd, vectors, n);
        }
        if (disk_writes_at_once != 0 && len > disk_writes_at_once)
                len = disk_writes_at_once;
        if (fails()) {
                (void)write_recorded(file, fd, vectors, n, len / 2);
                errno = disk_fails_with;
                written = -1;
        } else {
                written = write_recorded(file, fd, vectors, n, len);
        }
        pthread_mutex_unlock(&mutex);
        return written;
}

ssize_t
__wrap_write(int fd, const void *bytes, size_t len)
{
        const struct iovec vector = {(void *)(uintptr_t)bytes, len};
        int is_file;

        pthread_mutex_lock(&mutex);
        is_file = file_of(fd) >= 0;
        pthread_mutex_unlock(&mutex);
        return is_file ? __wrap_writev(fd, &vector, 1) : __real_write(fd, bytes, len);
}

int
__wrap_fdatasync(int fd)
{
        int file, result;
        char byte;

        if (disk_syncs_wait_for >= 0)
                ck_assert_int_eq(read(disk_syncs_wait_for, &byte, 1), 1);

        pthread_mutex_lock(&mutex);
        file = file_of(fd);
        result = file >= 0 && fails() ? -1 : 0;
        if (file >= 0 && result == 0 && !disk_ignores_syncs)
                add(DISK_SYNC, (unsigned)file);
        if (file >= 0 && result != 0)
                add(DISK_SYNC_FAILED, (unsigned)file);
        pthread_mutex_unlock(&mutex);
        return file >= 0 ? result : __real_fdatasync(fd);
}

int
__wrap_fsync(int fd)
{
        int result;

        if (!is_recorded_directory(fd))
                return __real_fsync(fd);
        pthread_mutex_lock(&mutex);
        result = fails() ? -1 : 0;
        if (result == 0 && !disk_ignores_directory_syncs)
                add(DISK_SYNC_DIRECTORY, 0);
        pthread_mutex_unlock(&mutex);
        return result;
}

static void
note_name(int directory, const char *name, enum disk_op_kind kind)
{
        pthread_mutex_lock(&mutex);
        for (unsigned i = 0; i < disk_n_files && is_recorded_directory(directory); i++) {
                if (strcmp(disk_names[i], name) == 0)
                        add(kind, i);
        }
        pthread_mutex_unlock(&mutex);
}

int
__wrap_unlinkat(int directory, const char *name, int flags)
{
        note_name(directory, name, DISK_REMOVE);
        if (disk_undeletable) {
                errno = EROFS;
                return -1;
        }
        return __real_unlinkat(directory, name, flags);
}

int
__wrap_renameat(int from_directory, const char *from, int to_directory, const char *to)
{
        note_name(from_directory, from, DISK_RENAME);
        return __real_renameat(from_directory, from, to_directory, to);
}

ssize_t
__wrap_pread(int fd, void *bytes, size_t len, off_t offset)
{
        uint64_t from = (uint64_t)offset, to = from + len;
        ssize_t n;

        if (disk_unreadable_to != 0 && to > disk_unreadable_from && from < disk_unreadable_to) {
                if (from >= disk_unreadable_from) {
                        (void)poll(NULL, 0, disk_unreadable_takes_ms);
                        atomic_fetch_add(&disk_n_unreadable, 1);
                        errno = EIO;
                        return -1;
                }
                len = disk_unreadable_from - from;
        }
        n = __real_pread(fd, bytes, len, offset);
        disk_n_read += n > 0 ? (uint64_t)n : 0;
        return n;
}

struct dirent *
__wrap_readdir(DIR *directory)
{
        if (disk_lists == 0) {
                errno = EIO;
                return NULL;
        }
        disk_lists -= disk_lists > 0;
        return __real_readdir(directory);
}

int
__wrap_fallocate(int fd, int mode, off_t offset, off_t len)
{
        int64_t room = atomic_load(&disk_room);

        if (room < 0 || len <= room)
                return __real_fallocate(fd, mode, offset, len);
        errno = ENOSPC;
        return -1;
}
