#ifndef BASE_SAFE_TEXT_H
#define BASE_SAFE_TEXT_H

#include <stddef.h>
#include <stdio.h>

/**
 * safe_text_char(text, len):
 * How many bytes the character has that text, of at least 1 byte, begins with. 0 when a terminal cannot be trusted with it:
 * a control character, which could play tricks there, those of Unicode (U+0080 to U+009F) too, one that
 * is not seen or changes how others are shown, such as an override of the direction, or no UTF-8.
 */
size_t safe_text_char(const char *text, size_t len);

/* Write text from the network for a person: bytes that a terminal cannot be trusted with as \xNN. */
void safe_text_print(FILE *out, const char *text, size_t len);

/* Write it to stdout as a column: padded to a width in bytes, and a space. */
void safe_text_column(const char *text, size_t len, size_t width);

#endif
