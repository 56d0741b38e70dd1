#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/**
 * utf8_is_valid(text, len):
 * Whether the bytes are well-formed UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF,
 * nothing cut off. NUL bytes are characters like others.
 */
int utf8_is_valid(const char *text, size_t len);

#endif
