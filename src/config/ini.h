#ifndef CONFIG_INI_H
#define CONFIG_INI_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "config/findings.h"

#define INI_LINE_MAX 4096

/*
 * The header of a section, which has no name here, or an option in it. A section may have an argument:
 * `[source invoicing]`. A line that begins with # or ; is a comment. A value may be in double quotes; it must
 * be when it has a # or ; after white space, since that could be meant as a comment.
 */
struct ini_entry {
        size_t line;
        char *section;
        char *argument; /* "" if there is none */
        char *name;     /* NULL for a header */
        char *value;
        const char *fault; /* what is wrong with the value; NULL: nothing */
};

struct ini {
        struct ini_entry *entries;
        size_t n;
        struct stat st; /* of the file before it was read */
};

/**
 * ini_read_file(file, ini, findings):
 * Read and parse a regular file of at most 1 MiB. Return 0, or -1 with one error if it cannot be read, is
 * no regular file, is too large, or has no entry. Call ini_clear() in either case.
 */
int ini_read_file(const char *file, struct ini *ini, struct findings *findings) MUST_CHECK;

/*
 * Parse a text. Append an error without a subject for each invalid line, which is left out. Call ini_clear()
 * afterwards.
 */
void ini_parse(const char *text, size_t len, struct ini *ini, struct findings *findings);

/*
 * Return the line of a section's header, or of an option in it if name is not NULL, or 0 if the file has
 * none.
 */
size_t ini_line(const struct ini *ini, const char *section, const char *argument, const char *name);

/* Wipe the values, among which there may be secrets, and release all. */
void ini_clear(struct ini *ini);

#endif
