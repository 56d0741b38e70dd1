#ifndef HTTP_TARGET_H
#define HTTP_TARGET_H

#include <stddef.h>

#include "base/compiler.h"

/**
 * target_check(method, target, len):
 * Whether a request target is one of RFC 9112 section 3.2: origin-form, absolute-form for http and https, or, with OPTIONS,
 * asterisk-form. Without user information and fragment; percent-encoding is whole. Returns NULL, or why it is refused.
 */
const char *target_check(const char *method, const char *target, size_t len) MUST_CHECK;

/* Whether the text is host [ ":" port ] with a host that is not empty, as in Host and in a target; RFC 3986 section 3.2. */
int target_is_authority(const char *text, size_t len);

/* The path of a request target. Returns where it begins. */
const char *target_path(const char *target, size_t len, size_t *path_len);

#endif
