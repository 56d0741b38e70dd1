#ifndef CLI_CAPTURE_H
#define CLI_CAPTURE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "model/delivery.h"

/* A header of one of the requests that were saved, which are counted from 1. */
struct captured_header {
        char *name;
        char *value;
        unsigned request;
};

/* The headers of requests, as someone has saved them. */
struct capture {
        struct captured_header *items;
        size_t n;
};

/**
 * capture_parse(text, len, capture, error):
 * Read headers in the form that the text has: lines `Name: value`, after a request line or not, up to an empty line; the
 * output of `curl -v`, of which the lines that begin with `> ` count; or JSON, as HAR or otherwise, where headers are
 * objects with name and value or members of an object. Returns 0, or -1 with the reason; either way the capture is to be
 * cleared.
 */
int capture_parse(const char *text, size_t len, struct capture *capture, struct error *error) MUST_CHECK;
void capture_clear(struct capture *capture);

/**
 * capture_count(capture, prefix, headers):
 * Count the four headers under a prefix, in the first request that has one of them; the texts are the capture's. Returns
 * how many requests have some.
 */
size_t capture_count(const struct capture *capture, const char *prefix, struct delivery_headers *headers);

/* For the readers of the forms: add a header, without the white space around its value. */
void capture_add(struct capture *capture, const char *name, size_t name_len, const char *value,
                 size_t value_len, unsigned request);
int capture_parse_json(const char *text, size_t len, struct capture *capture, struct error *error) MUST_CHECK;

#endif
