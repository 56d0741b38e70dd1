#ifndef SANDBOX_FILE_H
#define SANDBOX_FILE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

/**
 * file_replace(path, data, len, error):
 * Write a file that only its owner may read, so that whoever looks sees either what was there before or all of what is new,
 * also after a crash. Returns 0, or -1 with the reason.
 */
int file_replace(const char *path, const void *data, size_t len, struct error *error) MUST_CHECK;

#endif
