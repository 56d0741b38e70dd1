#ifndef CLI_CAPTURE_H
#define CLI_CAPTURE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "model/delivery.h"

struct captured_header {
        char *name;
        char *value;
        unsigned request; /* counted from 1 */
};

/* The headers of saved requests. */
struct capture {
        struct captured_header *items;
        size_t n;
};

/**
 * capture_parse(text, len, capture, error):
 * Read headers from lines `Name: value` up to an empty line, after a request line or not; from the lines of
 * `curl -v` that begin with `> `; or from JSON, such as HAR, where a header is a member of an object, or an
 * object with name (or key) and value. Returns 0, or -1 with the reason; call capture_clear() in either
 * case.
 */
int capture_parse(const char *text, size_t len, struct capture *capture, struct error *error) MUST_CHECK;
void capture_clear(struct capture *capture);

/**
 * capture_select(capture, prefix, headers):
 * Find the delivery headers with a prefix in the first request that has any; the values stay the capture's.
 * Returns the number of requests that have any.
 */
size_t capture_select(const struct capture *capture, const char *prefix, struct delivery_headers *headers);

/* Return the prefix of the first header `<prefix>-signature`, which the caller frees; NULL without one. */
char *capture_find_prefix(const struct capture *capture);

#endif
