#ifndef SANDBOX_FILE_H
#define SANDBOX_FILE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

/**
 * file_read(path, max, len, error):
 * Read a whole file of less than max bytes, which may contain secrets: release it with secrets_free().
 * Returns *len bytes, or NULL with the reason.
 */
char *file_read(const char *path, size_t max, size_t *len, struct error *error) MUST_CHECK;

/**
 * file_replace(path, data, len, error):
 * Replace a file atomically and durably, with mode 0600: readers see the old contents or the new, also after
 * a crash. Returns 0, or -1 with the reason.
 */
int file_replace(const char *path, const void *data, size_t len, struct error *error) MUST_CHECK;

#endif
