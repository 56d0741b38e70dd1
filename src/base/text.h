#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "base/compiler.h"

/**
 * text_is_utf8(text, len):
 * Return whether the bytes are well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, no code point
 * above U+10FFFF, no truncated character. NUL is an ordinary character.
 */
int text_is_utf8(const char *text, size_t len);

/**
 * text_printable(text, len):
 * Return the number of bytes of the first character of text, which has at least 1 byte. Return 0 if the
 * character is not safe on a terminal: a control character (C0, DEL or C1), an invisible character, one that
 * changes how others are displayed, such as a direction override, or malformed UTF-8.
 */
size_t text_printable(const char *text, size_t len);

/* Print untrusted text; write bytes that are not safe on a terminal as \xNN. */
void text_print(FILE *out, const char *text, size_t len);

/* Likewise to stdout, padded to a width in bytes and followed by a space. */
void text_print_column(const char *text, size_t len, size_t width);

/**
 * text_closest(name, candidates, n):
 * Return the candidate that a misspelt name most likely means: at most two edits away (one for names under
 * five letters), where swapping neighbouring letters is one edit. Return NULL if none is that close. Names
 * over 63 bytes match nothing.
 */
const char *text_closest(const char *name, const char *const *candidates, size_t n);

/*
 * Return a text as one word of a shell's command: as it is, or in single quotes if the shell would read it
 * otherwise. The caller frees it.
 */
char *text_for_shell(const char *text) MUST_CHECK;

#endif
