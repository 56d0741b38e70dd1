#ifndef CONFIG_FINDINGS_H
#define CONFIG_FINDINGS_H

#include <stddef.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/json.h"

/*
 * What a command has found out about an installation. `check`, `topics list`, `status` and `doctor` collect
 * findings and print them with the functions of this file. The remedy is a field of its own: nothing cuts it
 * out of a text.
 */

enum finding_level {
        FINDING_ERROR,   /* it does not work */
        FINDING_WARNING, /* it works, but probably not as intended */
        FINDING_NOTE,    /* it works as configured */
        FINDING_PASSED,  /* it was checked, and is in order */
        FINDING_SKIPPED, /* it was not checked; the text says why */
        FINDING_N_LEVELS,
};

/* A text has at most this many bytes, a longer one is cut. A remedy is at most two lines of a terminal. */
#define FINDING_TEXT_SIZE 256

struct finding {
        enum finding_level level;
        int status;       /* exit status of an error, of sysexits.h; else 0 */
        const char *step; /* of doctor; NULL elsewhere */
        char *subject;    /* such as a file, a topic or a listener; NULL: nothing in particular */
        size_t line;      /* in the file that is the subject; 0: none */
        char *text;
        char *remedy; /* what to do about it, often a command; NULL: nothing, or the text says it */
};

/* A list of findings, in the order in which they were added. All zero: an empty list. */
struct findings {
        struct finding *items;
        size_t n;
};

/**
 * findings_add(findings, level, subject, format, ...):
 * Append a finding, without step, line and remedy; the status of an error is EX_CONFIG. The subject may be
 * NULL. The text contains no secret. Return the finding, to set its other members; valid until the next is
 * added.
 */
struct finding *findings_add(struct findings *findings, enum finding_level level, const char *subject,
                             const char *format, ...) PRINTF_LIKE(4, 5);

/* Set what to do about a finding. */
void finding_set_remedy(struct finding *finding, const char *format, ...) PRINTF_LIKE(2, 3);

/* Likewise for a path that cannot be opened with this errno, if there is something to do. */
void finding_set_access_remedy(struct finding *finding, const char *path, int reason);

/* Return the number of findings of a level. */
size_t findings_count(const struct findings *findings, enum finding_level level);

/* Return the first finding of a level, or NULL. */
const struct finding *findings_first(const struct findings *findings, enum finding_level level);

/* Return the exit status of the first error, or 0. */
int findings_status(const struct findings *findings);

/* Sort by line; findings of one line keep their order. */
void findings_sort_by_line(struct findings *findings);

/* Append all findings of another list, which is empty afterwards. */
void findings_move(struct findings *findings, struct findings *others);

/* Release the findings. The list is empty afterwards. */
void findings_clear(struct findings *findings);

/**
 * finding_print(out, finding):
 * Print a finding as text: `SUBJECT:LINE: warning: TEXT`, and on a second line `  remedy: REMEDY` if it has
 * one. An error has no word for its level. With a step, the line begins with a mark instead, such as
 * `FAIL topics gatepost.deliveries: TEXT`. Bytes that are not safe on a terminal are written as \xNN.
 */
void finding_print(FILE *out, const struct finding *finding);

/* Write a finding as a JSON object: level, step, subject, line, text, remedy, status. */
void finding_put_json(struct json_writer *json, const struct finding *finding);

#endif
