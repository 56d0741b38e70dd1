#ifndef CONFIG_INI_H
#define CONFIG_INI_H

#include <stddef.h>
#include <sys/types.h>

#include "config/problems.h"

#define INI_LINE_MAX 4096

/*
 * One line that says something: a section's header (no name), or an option in it. A section may have an argument:
 * `[source invoicing]`. A comment is a line that begins with # or ;, or what follows white space and a semicolon. A value
 * in double quotes is what stands between them.
 */
struct ini_entry {
        size_t line;
        char *section;
        char *argument; /* "" when there is none */
        char *name;     /* NULL for a header */
        char *value;
};

struct ini {
        struct ini_entry *entries;
        size_t n;
        mode_t mode; /* of the file that was read; 0 for a text from elsewhere */
};

/**
 * ini_parse(text, len, ini, problems):
 * Read a whole file. Lines that are wrong are added to problems and left out. Release with ini_clear(), which wipes the
 * values: there may be secrets among them.
 */
void ini_parse(const char *text, size_t len, struct ini *ini, struct problems *problems);
void ini_clear(struct ini *ini);

#endif
