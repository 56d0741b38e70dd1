#ifndef CLI_SAFE_TEXT_H
#define CLI_SAFE_TEXT_H

#include <stddef.h>
#include <stdio.h>

/**
 * safe_text_print(out, text, len):
 * Write text from the network for a person: control characters, which could play tricks on a terminal, as \xNN; those of
 * Unicode above ASCII (U+0080 to U+009F) too.
 */
void safe_text_print(FILE *out, const char *text, size_t len);

/* Write it to stdout as a column: padded to a width in bytes, and a space. */
void safe_text_column(const char *text, size_t len, size_t width);

#endif
