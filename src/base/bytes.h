#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Bytes as text: hexadecimal, base64, UUIDs. */

/* Write 2 * len lowercase hexadecimal digits and a NUL. text holds at least 2 * len + 1 bytes. */
void bytes_to_hex(const uint8_t *bytes, size_t len, char *text);

/* Return the value of a hexadecimal digit of either case, or -1. */
int bytes_hex_digit(char c);

/**
 * bytes_from_hex(text, bytes, len):
 * Read 2 * len lowercase hexadecimal digits from text, which need not be NUL-terminated. Return 0, or -1 at
 * any other character, upper case included.
 */
int bytes_from_hex(const char *text, uint8_t *bytes, size_t len) MUST_CHECK;

/* Return the bytes in padded base64 (RFC 4648 section 4). The caller frees it. */
char *bytes_to_base64(const void *bytes, size_t len);

#define BYTES_UUID_SIZE 37 /* with its NUL */

/* Write a random UUID (RFC 9562, version 4). Exit the process if there are no random bytes. Return id. */
char *bytes_random_uuid(char id[BYTES_UUID_SIZE]);

#endif
