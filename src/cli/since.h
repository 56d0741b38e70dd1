#ifndef CLI_SINCE_H
#define CLI_SINCE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

/**
 * since_parse(text, since_ms, error):
 * Read the argument of --since: an age, such as 2h, or a time in UTC, such as 2026-11-21T03:04:05Z, which must not lie
 * ahead. Returns 0 and milliseconds since the epoch, or -1 with the reason.
 */
int since_parse(const char *text, int64_t *since_ms, struct error *error) MUST_CHECK;

#endif
