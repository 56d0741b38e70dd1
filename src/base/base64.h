#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes base64_decode() writes at most. */
#define BASE64_ROOM(len) ((len) / 4 * 3 + 6)

/**
 * base64_decode(text, len, bytes):
 * Read base64 in either alphabet of RFC 4648, padded or not, without white space. Returns the number of bytes written, or 0
 * when the text is empty or no base64.
 */
size_t base64_decode(const char *text, size_t len, uint8_t *bytes);

/* Write the text in the alphabet of RFC 4648 section 4, padded. The caller frees it. */
char *base64_encode(const void *bytes, size_t len);

#endif
