#ifndef CLI_CAPTURE_H
#define CLI_CAPTURE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "model/delivery.h"

/* The headers of a saved request, within its text. */
struct capture {
        struct captured_header {
                const char *name;
                const char *value;
        } * items;
        size_t n;
};

/**
 * capture_parse(text, capture, error):
 * Read headers from lines `Name: value` up to an empty line, after a request line or not, or from the lines
 * of `curl -v` that begin with `> `. Overwrites the text, which must outlive the capture. Returns 0, or -1
 * with the reason; free the items in either case.
 */
int capture_parse(char *text, struct capture *capture, struct error *error) MUST_CHECK;

/* Find the delivery headers with a prefix. Returns whether there are any. */
int capture_select(const struct capture *capture, const char *prefix, struct delivery_headers *headers);

/* Return the prefix of the first header `<prefix>-signature`, which the caller frees; NULL without one. */
char *capture_find_prefix(const struct capture *capture);

#endif
