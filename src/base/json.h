#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"

/*
 * Writes JSON. Texts must be UTF-8. Where a name is expected, NULL means none: the value is an element of an
 * array, or the whole document. json_reader.h and json_tree.h read JSON.
 */
struct json_writer;

/*
 * Return a writer, to be released by json_take(), json_write() or json_print(). beautify: indent, for people.
 * Like mem_alloc(), running out of memory exits the process.
 */
struct json_writer *json_new(int beautify);

/* Release the writer. Return the text, a string of *len bytes, which the caller frees. */
char *json_take(struct json_writer *json, size_t *len);

/*
 * Write the text to a file or stdout, followed by a newline, with control characters escaped. Release the
 * writer.
 */
void json_write(struct json_writer *json, FILE *out);
void json_print(struct json_writer *json);

void json_open_object(struct json_writer *json, const char *name);
void json_close_object(struct json_writer *json);
void json_open_array(struct json_writer *json, const char *name);
void json_close_array(struct json_writer *json);

/* Write a value. A NULL text becomes null; a literal is that of a number. */
void json_member(struct json_writer *json, const char *name, const char *text);
void json_string(struct json_writer *json, const char *name, const char *text, size_t len);
void json_number(struct json_writer *json, const char *name, int64_t value);
void json_literal(struct json_writer *json, const char *name, const char *literal);
void json_flag(struct json_writer *json, const char *name, int value);
void json_null(struct json_writer *json, const char *name);

/*
 * Write untrusted bytes as a member: a string if they are UTF-8, else base64 under the name `<name>Base64`,
 * so that nothing is lost. In the name, too, bytes that are not UTF-8 become U+FFFD.
 */
void json_bytes(struct json_writer *json, const char *name, const void *bytes, size_t len);

#endif
