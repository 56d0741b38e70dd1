#ifndef SPOOL_SPOOL_DIRECTORY_H
#define SPOOL_SPOOL_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "spool/segment.h"

/*
 * The directory of a spool: segments, named by 16 hexadecimal digits in the order in which they were begun
 * and `.spool`; damaged ones that are kept for an administrator, with `.damaged` after it; and the file
 * `lock`. Other files are left alone, and so are numbers above SPOOL_NUMBER_MAX, which leave no room for
 * later ones.
 */
struct spool_directory;

#define SPOOL_NAME_SIZE 40
#define SPOOL_NUMBER_MAX (UINT64_C(1) << 62)

/*
 * Open a directory, which must exist. With exclusive set, lock it against other processes, and refuse it if
 * one of them uses it. Return NULL with the reason.
 */
struct spool_directory *spool_directory_open(const char *path, int exclusive, struct error *error) MUST_CHECK;

/* NULL is harmless. */
void spool_directory_close(struct spool_directory *directory);

/* Return its descriptor, for segment_reader_open(). */
int spool_directory_fd(const struct spool_directory *directory);

/* Return the path that was opened. */
const char *spool_directory_path(const struct spool_directory *directory);

/* Write the name of a segment. Return name. */
char *spool_directory_name(uint64_t number, char name[SPOOL_NAME_SIZE]);

/* Write the name of a segment that was put aside as damaged. Return name. */
char *spool_directory_damaged_name(uint64_t number, char name[SPOOL_NAME_SIZE]);

/* Read the number in the name of a segment. Return 0, or -1 if it is not one. */
int spool_directory_parse(const char *name, uint64_t *number) MUST_CHECK;

/* A segment, or one that was put aside as damaged. */
struct spool_file {
        uint64_t number;
        uint64_t size; /* bytes */
};

/* The segments in a directory, and the damaged ones, both by their numbers. */
struct spool_listing {
        struct spool_file *segments;
        size_t n_segments;
        struct spool_file *damaged;
        size_t n_damaged;
        size_t n_others; /* files that are neither, nor the lock */
        uint64_t damaged_bytes;
        uint64_t last; /* the largest number, of damaged ones too; 0 without any */
};

/* List the files. If log is set, log those that are neither segments nor the lock. */
int spool_directory_list(const struct spool_directory *directory, int log, struct spool_listing *listing,
                         struct error *error) MUST_CHECK;
void spool_listing_free(struct spool_listing *listing);

/* Whether the path that was opened still leads to this directory, or another path does. */
int spool_directory_is_in_place(const struct spool_directory *directory);
int spool_directory_is_at(const struct spool_directory *directory, const char *path);

/*
 * Return a path that leads to this directory: the one that was opened, or that to which it was renamed; NULL
 * if none is known, as when it was deleted or is hidden by a mount. The caller frees it.
 */
char *spool_directory_find(const struct spool_directory *directory) MUST_CHECK;

/* Create the file of a segment. Return its descriptor, or -1 with errno set. */
int spool_directory_create(const struct spool_directory *directory, uint64_t number) MUST_CHECK;

/* Make the names in the directory survive a power failure. Return 0, or -1 with errno set. */
int spool_directory_sync(const struct spool_directory *directory) MUST_CHECK;

/* Delete a segment, or put it aside as damaged. Return 0, or -1 with errno set. */
int spool_directory_remove(const struct spool_directory *directory, uint64_t number);
int spool_directory_put_aside(const struct spool_directory *directory, uint64_t number);

#endif
