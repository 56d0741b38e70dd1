#ifndef CONFIG_PROBLEMS_H
#define CONFIG_PROBLEMS_H

#include <stddef.h>

#include "base/compiler.h"

enum problem_level {
        PROBLEM_ERROR,   /* the configuration is refused */
        PROBLEM_WARNING, /* it works, but probably not as intended */
};

struct problem {
        enum problem_level level;
        size_t line; /* 0: of the file as a whole */
        char *text;
        /* Of the line, while a problem is reported; NULL: none. */
        const char *section;
        const char *argument;
        const char *option;
        int is_hidden; /* a path that the systemd units hide from gatepostd; what to do follows a semicolon */
};

/* Called with each problem. */
typedef void problems_reporter(const char *file, const struct problem *problem);

/* The problems of a file, collected so that all are reported at once. */
struct problems {
        const char *file;
        problems_reporter *report; /* NULL: problems_print_error() */
        struct problem *items;
        size_t n;
        size_t n_errors;
};

/* Add an error, or a warning, on a line. The text says how to correct it and contains no secret. */
void problems_add(struct problems *problems, size_t line, const char *format, ...) PRINTF_LIKE(3, 4);
void problems_warn(struct problems *problems, size_t line, const char *format, ...) PRINTF_LIKE(3, 4);

/* Return a problem as `file:line: text` or `file:line: warning: text`, to be freed. */
char *problems_text(const char *file, const struct problem *problem) MUST_CHECK;

/*
 * Write this to stderr; bytes that are not safe on a
 * terminal as \xNN.
 */
void problems_print(const char *file, const struct problem *problem);

/* Write only errors to stderr: warnings are for gatepostd and gatepost check. */
void problems_print_error(const char *file, const struct problem *problem);

/* Report the problems in the order of their lines. Return the number of errors. */
size_t problems_report_all(struct problems *problems);

void problems_clear(struct problems *problems);

#endif
