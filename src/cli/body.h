#ifndef CLI_BODY_H
#define CLI_BODY_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

#define BODY_MAX (128u << 20) /* bytes; twice the largest max_body */

#define BODY_CAPTURE_MAX (16u << 20) /* bytes of saved headers */

/**
 * body_read(file, len, error):
 * The body of a delivery: a file's bytes, or those of standard input when file is "-". Returns *len bytes, which the caller
 * frees; NULL with the reason, which names the file, when it cannot be read or is longer than BODY_MAX.
 */
char *body_read(const char *file, size_t *len, struct error *error) MUST_CHECK;

/* Likewise the headers of a delivery that was saved, which are no longer than BODY_CAPTURE_MAX. */
char *body_read_capture(const char *file, size_t *len, struct error *error) MUST_CHECK;

#endif
