#ifndef HTTP_CHUNK_H
#define HTTP_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define CHUNK_DIGITS_MAX 16

/* How many hexadecimal digits stand at the beginning, CHUNK_DIGITS_MAX + 1 if there are more. */
size_t chunk_n_digits(const char *line, size_t len);

/**
 * chunk_parse(line, len, size):
 * Read the line before a chunk's data, without its CR LF: chunk-size [ chunk-ext ], RFC 9112 sections 7.1 and 7.1.1.
 * Returns NULL, or why it is refused.
 */
const char *chunk_parse(const char *line, size_t len, uint64_t *size) MUST_CHECK;

/* Whether the line, as far as it has come, is that of the last chunk: its size is there and is 0. */
int chunk_is_last(const char *line, size_t len);

#endif
