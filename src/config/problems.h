#ifndef CONFIG_PROBLEMS_H
#define CONFIG_PROBLEMS_H

#include <stddef.h>

#include "base/compiler.h"

struct problem {
        size_t line; /* 0: of the file as a whole */
        char *text;
};

/* Somebody who is told a problem; line is 0 for the file as a whole. */
typedef void problems_reporter(const char *file, size_t line, const char *text);

/* What is wrong with a file, collected so that all of it is told at once. */
struct problems {
        const char *file;
        problems_reporter *report; /* NULL: written to stderr, `file:line: text` */
        struct problem *items;
        size_t n;
};

/* Take note of something wrong on a line. The text says how to mend it, and never has a secret in it. */
void problems_add(struct problems *problems, size_t line, const char *format, ...) PRINTF_LIKE(3, 4);

/* Tell them in the order of their lines. Returns how many there are. */
size_t problems_report_all(struct problems *problems);

void problems_clear(struct problems *problems);

#endif
