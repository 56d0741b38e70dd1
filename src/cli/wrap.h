#ifndef CLI_WRAP_H
#define CLI_WRAP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Lines that fit the terminal. Each line that is written to stdout or stderr is broken between words where it
 * is wider than the terminal; what follows is indented. Nothing changes for a stream that is no terminal.
 */

/*
 * Wrap what is written from now on, if the stream is a terminal. Not for JSON, or texts that people copy.
 * With stderr, the lines of the log are wrapped, too.
 */
void wrap_stdout(void);
void wrap_stderr(void);

/* Return the width to which stdout is wrapped, in columns, or 0 if it is not. */
size_t wrap_width(void);

/* Return what to print to stdout where the further lines of the present line shall begin. */
const char *wrap_mark(void);

/**
 * wrap_print(out, text, column, indent):
 * Print untrusted text from this column on, and a newline. Further lines begin at the column `indent`; where
 * the stream is not wrapped, they end at column 80 if words permit.
 */
void wrap_print(FILE *out, const char *text, size_t column, size_t indent);

/**
 * wrap_print_first(text, column, others):
 * Print the first cell of a row of a table, padded to this width and a space. The other cells take `others`
 * columns: on a narrow terminal the first column is narrower, and a cell that is wider has a line of its own.
 */
void wrap_print_first(const char *text, size_t column, size_t others);

#endif
