#ifndef CLI_RESPACE_H
#define CLI_RESPACE_H

#include <stddef.h>

/* How the tokens of a JSON text are set. */
struct respace_style {
        const char *indent; /* for each level, on a line for each member; NULL: all in one line */
        const char *colon;
        const char *comma;
};

/**
 * respace(text, len, style, respaced_len):
 * Set a JSON text anew, without changing any token: only the white space between them. Returns *respaced_len bytes, which
 * the caller frees; NULL when the text is nested deeper than 64 or would grow beyond reason. The text need not be right.
 */
char *respace(const char *text, size_t len, const struct respace_style *style, size_t *respaced_len);

#endif
