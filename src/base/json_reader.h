#ifndef BASE_JSON_READER_H
#define BASE_JSON_READER_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_OBJECT, JSON_ARRAY };

/*
 * The functions that json_read() calls. They return 0; or -1 to stop, after setting the error that
 * json_read() was called with. Texts are valid during the call only.
 */
struct json_events {
        /*
         * A scalar, or the beginning of an object or array. text: the characters of a string, or the literal
         * of a number, of any size; "true" or "false"; else NULL.
         */
        int (*value)(void *arg, enum json_type type, const char *text, size_t len);

        /* The name of the member whose value is next. The caller handles duplicate names. */
        int (*name)(void *arg, const char *text, size_t len);

        /* The end of an object or array. */
        int (*end)(void *arg, enum json_type type);
};

/**
 * json_read(text, len, max_depth, events, arg, error):
 * Read a complete JSON text (RFC 8259), which may come from the network, in one pass. Besides what is not
 * JSON, refuse bytes that are not UTF-8 (RFC 3629) and more than max_depth levels; the outermost value is
 * level 1. An escaped half of a surrogate pair reads as U+FFFD. Return 0, or -1 with the reason if the text
 * is refused or an event stopped. Memory is bounded by a few times len; like mem_alloc(), running out of it
 * exits the process.
 */
int json_read(const char *text, size_t len, size_t max_depth, const struct json_events *events, void *arg,
              struct error *error) MUST_CHECK;

#endif
