#ifndef CLI_GUESS_BODY_H
#define CLI_GUESS_BODY_H

#include <stddef.h>

/* What may have been done to a body on its way, undone. */

size_t guess_body_count(void);

/* What was done to the body after it was signed, as a clause: "a newline was added at the body's end". */
const char *guess_body_what(size_t index);

/**
 * guess_body_undo(index, body, len, undone_len):
 * The body as it was before. Returns *undone_len bytes, which the caller frees, or NULL when it cannot have been done to
 * this body.
 */
char *guess_body_undo(size_t index, const char *body, size_t len, size_t *undone_len);

#endif
