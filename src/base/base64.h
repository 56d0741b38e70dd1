#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

/* Return the base64 text of bytes (RFC 4648 section 4), padded; the caller frees it. */
char *base64_encode(const void *bytes, size_t len);

#endif
