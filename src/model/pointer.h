#ifndef MODEL_POINTER_H
#define MODEL_POINTER_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

#define POINTER_MAX_SEGMENTS 16

/* A JSON Pointer (RFC 6901): the member names and array indices on the way to a value, unescaped. */
struct pointer {
        char *text; /* as configured */
        char *segments[POINTER_MAX_SEGMENTS];
        size_t n_segments;
};

/**
 * pointer_parse(text, pointer, error):
 * Read a pointer such as /data/invoiceId. The empty pointer, which means the whole document, is refused: nothing
 * that Gatepost looks for is there. Returns 0, or -1 with the reason; release with pointer_clear().
 */
int pointer_parse(const char *text, struct pointer *pointer, struct error *error) MUST_CHECK;
void pointer_clear(struct pointer *pointer);

#endif
