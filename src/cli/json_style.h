#ifndef CLI_JSON_STYLE_H
#define CLI_JSON_STYLE_H

#include "base/json_tree.h"

/* How a serialiser writes JSON. */
struct json_style {
        const char *indent; /* of a level, with a line for each member; NULL: all on one line */
        const char *after_colon;
        const char *after_comma;
        int escapes_slashes; /* / as \/ */
        int escapes_letters; /* what is not ASCII as \u, in lower case */
};

/* Write a value in a style. Returns *len bytes and room for two more, which the caller frees. */
char *json_style_write(const struct json_value *value, const struct json_style *style, size_t *len);

#endif
