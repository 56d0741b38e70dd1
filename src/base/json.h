#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <yajl/yajl_gen.h>

/*
 * Writing JSON, and what reading it needs besides, for the command line and the sandbox. Memory that fails ends the process, as with mem_alloc(); the paths
 * that a delivery takes use json_memory.h. Texts must be UTF-8.
 */

/* A generator; json_take() releases it. beautify: over many lines, for people. */
yajl_gen json_new(int beautify);

/* All of it as a string of *len bytes, which the caller frees. The generator is released. */
char *json_take(yajl_gen json, size_t *len);

/* Write all of it, or to stdout, with a newline at its end, and no character that controls a terminal. The generator is released. */
void json_write(yajl_gen json, FILE *out);
void json_print(yajl_gen json);

/* Whether nothing but white space, as JSON knows it (RFC 8259 section 2), stands there. */
int json_is_space(const char *text, size_t len);

/* yajl's memory, from mem.h. */
yajl_alloc_funcs *json_allocation(void);

/* A string, or the name of a member. */
void json_text(yajl_gen json, const char *text);

/* Members of an object. A text that is NULL becomes null. */
void json_member(yajl_gen json, const char *name, const char *text);
void json_number(yajl_gen json, const char *name, int64_t value);
void json_flag(yajl_gen json, const char *name, int value);
void json_null(yajl_gen json, const char *name);

/* A member with bytes from anywhere: a string where they are UTF-8, else base64 as `<name>Base64`, so that nothing is lost. The
 * name may be anything, too; where it is no UTF-8 it has U+FFFD. */
void json_bytes(yajl_gen json, const char *name, const void *bytes, size_t len);

#endif
