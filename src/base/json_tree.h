#ifndef BASE_JSON_TREE_H
#define BASE_JSON_TREE_H

#include <stddef.h>

#include <yajl/yajl_gen.h>

#include "base/compiler.h"
#include "base/error.h"

#define JSON_TREE_MAX_DEPTH 32 /* the outermost value is level 1 */

enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_OBJECT, JSON_ARRAY };

/* A JSON text in memory. Plain values: a tree belongs to its root. */
struct json_value {
        enum json_type type;
        char *name;               /* of a member, else NULL */
        char *text;               /* a string's characters, or a number as it stands in the text; else NULL */
        int flag;                 /* of a boolean */
        struct json_value *first; /* of an object or array, in order */
        struct json_value *last;
        struct json_value *next;
        struct json_value *parent;
        size_t n; /* values in it */
};

/**
 * json_tree_parse(text, len, error):
 * Read a whole JSON text (RFC 8259). Refused besides what is no JSON: bytes that are not UTF-8, a member twice in an object,
 * a NUL character in a string, deeper nesting than JSON_TREE_MAX_DEPTH. Input from the network is welcome; memory that
 * fails ends the process. Returns the root, or NULL with the reason.
 */
struct json_value *json_tree_parse(const char *text, size_t len, struct error *error) MUST_CHECK;

/* NULL is harmless. */
void json_tree_free(struct json_value *root);

/* The member of an object, or NULL: also when value is NULL or no object. */
const struct json_value *json_tree_get(const struct json_value *value, const char *name);

/* The characters of an object's member that is a string, else NULL. */
const char *json_tree_text(const struct json_value *value, const char *name);

/* Write a value, as it was read. */
void json_tree_write(yajl_gen json, const struct json_value *value);

/* "a string", "an object": what a type is called in a message. */
const char *json_type_name(enum json_type type);

#endif
