#ifndef HTTP_FIELD_H
#define HTTP_FIELD_H

#include <stddef.h>

#include "base/compiler.h"

/* A line of a header section or of a trailer section. The spans point into the line. */
struct field {
        const char *name;
        size_t name_len;
        const char *value; /* without the white space around it */
        size_t value_len;
};

/* How many bytes at the beginning are those of a token, RFC 9110 section 5.6.2. */
size_t field_token_len(const char *text, size_t len);

/* Leave the white space at both ends away (OWS, RFC 9110 section 5.6.3). */
void field_trim(const char **text, size_t *len);

/**
 * field_parse(line, len, field):
 * Read a line, without its CR LF, by RFC 9112 section 5: no folding, no space before the colon, no control characters.
 * Returns NULL, or why it is refused.
 */
const char *field_parse(const char *line, size_t len, struct field *field) MUST_CHECK;

/* Whether the field has this name; names compare without case. */
int field_is(const struct field *field, const char *name);

/* Whether the value is this one, without case. */
int field_value_is(const struct field *field, const char *value);

/**
 * field_may_trail(field):
 * Whether it may stand in a trailer section. Nothing reads trailers here, but some reader before might take from one how a
 * message is framed or where it goes, RFC 9110 section 6.5.1.
 */
int field_may_trail(const struct field *field);

#endif
