#ifndef BASE_JSON_TREE_H
#define BASE_JSON_TREE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_reader.h"

#define JSON_TREE_MAX_DEPTH 32 /* the outermost value is level 1 */

/* A JSON text in memory. json_tree_free() on the root releases all values. */
struct json_value {
        enum json_type type;
        char *name;               /* of a member, else NULL */
        char *text;               /* the characters of a string, or the literal of a number; else NULL */
        int flag;                 /* of a boolean */
        struct json_value *first; /* first of an object's or array's values, in order */
        struct json_value *last;
        struct json_value *next;
        struct json_value *parent;
        size_t n; /* number of values in it */
};

/**
 * json_tree_parse(text, len, error):
 * Read a JSON text by json_read(). Also refused are duplicate members, and NUL characters in strings. Running
 * out of memory exits the process. Return the root, or NULL with the reason.
 */
struct json_value *json_tree_parse(const char *text, size_t len, struct error *error) MUST_CHECK;

/* NULL is harmless. */
void json_tree_free(struct json_value *root);

/* Return an object's member, or NULL; also if value is NULL or no object. */
const struct json_value *json_tree_get(const struct json_value *value, const char *name);

/* Return the characters of an object's member if it is a string, else NULL. */
const char *json_tree_text(const struct json_value *value, const char *name);

/**
 * json_tree_at(value, path):
 * Return a member of a member: the path has their names with dots between them, such as `spool.errors.full`.
 * Return NULL if there is none.
 */
const struct json_value *json_tree_at(const struct json_value *value, const char *path);

/*
 * Return the number that a value is; the number at a path. Return 0 if there is none, or if it cannot be a
 * count or a time: whoever wrote the text may not be the program that was asked.
 */
double json_tree_value(const struct json_value *value);
double json_tree_number(const struct json_value *value, const char *path);

/* Return whether the value at a path is true; whether it is false. */
int json_tree_is_true(const struct json_value *value, const char *path);
int json_tree_is_false(const struct json_value *value, const char *path);

/* Write a value, with its name if it is a member. Numbers keep their literal. */
void json_tree_write(struct json_writer *json, const struct json_value *value);

#endif
