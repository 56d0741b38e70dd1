#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/**
 * hex_encode(bytes, len, text):
 * Write 2 * len lowercase hexadecimal digits and a NUL to text, which holds at least 2 * len + 1 bytes.
 */
void hex_encode(const uint8_t *bytes, size_t len, char *text);

/* The value of a hexadecimal digit of either case, or -1. */
int hex_digit(char c);

/**
 * hex_decode(text, bytes, len):
 * Read exactly 2 * len lowercase digits from text, which need not be NUL-terminated. Returns 0, or -1 at any
 * other character, upper case included.
 */
int hex_decode(const char *text, uint8_t *bytes, size_t len) MUST_CHECK;

#endif
