#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/compiler.h"

/**
 * The reason for a failure, for people. A function that fails sets it and returns -1 or NULL; the caller that
 * knows most about the circumstances logs it, once. It never contains a secret.
 */
struct error {
        char text[1024];
};

/**
 * error_set(error, format, ...):
 * Set the reason, truncated if necessary. Return -1, so that a failing function can return the result.
 */
int error_set(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/**
 * error_prefix(error, format, ...):
 * Put the formatted text and ": " before the existing reason. Return -1.
 */
int error_prefix(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/**
 * error_set_openssl(error, what):
 * Set the reason to `what`, ": " and the last OpenSSL error of this thread, or "out of memory" if there is
 * none. Clear the thread's OpenSSL errors. Return -1.
 */
int error_set_openssl(struct error *error, const char *what);

#endif
