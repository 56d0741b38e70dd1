#ifndef CLI_SHOW_BODY_H
#define CLI_SHOW_BODY_H

#include <stddef.h>

/**
 * show_body(body, len):
 * Write bytes to stdout for a person: as they are when they are text that a terminal can take, with a newline at the end;
 * else as a hex dump, 16 a line. Text is UTF-8 without control characters but tabs and line
 * ends.
 */
void show_body(const char *body, size_t len);

#endif
