#ifndef CONFIG_PROBLEMS_H
#define CONFIG_PROBLEMS_H

#include <stddef.h>

#include "base/compiler.h"

struct problem {
        size_t line; /* 0: of the file as a whole */
        char *text;
};

/* Called with each problem; line is 0 for the file as a whole. */
typedef void problems_reporter(const char *file, size_t line, const char *text);

/* The errors in a file, collected so that all are reported at once. */
struct problems {
        const char *file;
        problems_reporter *report; /* NULL: written to stderr, `file:line: text` */
        struct problem *items;
        size_t n;
};

/* Add an error on a line. The text says how to correct it and contains no secret. */
void problems_add(struct problems *problems, size_t line, const char *format, ...) PRINTF_LIKE(3, 4);

/* Report the errors in the order of their lines. Return their number. */
size_t problems_report_all(struct problems *problems);

void problems_clear(struct problems *problems);

#endif
