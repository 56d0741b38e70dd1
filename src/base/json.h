#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <yajl/yajl_gen.h>

/*
 * Writing JSON, for everything but the path of a delivery: like mem_alloc(), running out of memory exits the
 * process. Texts must be UTF-8. json_tree.h reads JSON.
 */

/*
 * Return a generator, to be released by json_take(), json_write() or json_print(). beautify: indent, for
 * people.
 */
yajl_gen json_new(int beautify);

/* Return the text, of *len bytes, which the caller frees. Release the generator. */
char *json_take(yajl_gen json, size_t *len);

/*
 * Write the text to a file or stdout, followed by a newline, with control characters escaped. Release the
 * generator.
 */
void json_write(yajl_gen json, FILE *out);
void json_print(yajl_gen json);

/* Return whether the text is nothing but JSON white space (RFC 8259 section 2). */
int json_is_space(const char *text, size_t len);

/* Return allocation functions for yajl that use mem.h. */
yajl_alloc_funcs *json_allocation(void);

/* Write a string, or the name of a member. */
void json_text(yajl_gen json, const char *text);

/* Write a member of an object. A NULL text becomes null. */
void json_member(yajl_gen json, const char *name, const char *text);
void json_number(yajl_gen json, const char *name, int64_t value);
void json_flag(yajl_gen json, const char *name, int value);
void json_null(yajl_gen json, const char *name);

/*
 * Write untrusted bytes as a member: a string if they are UTF-8, else base64 under the name `<name>Base64`,
 * so that nothing is lost. In the name, too, bytes that are not UTF-8 become U+FFFD.
 */
void json_bytes(yajl_gen json, const char *name, const void *bytes, size_t len);

#endif
