#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/compiler.h"

/**
 * The reason of a failure, for a person. A function that fails fills it and returns -1 or NULL; whoever can say
 * most about the circumstances logs it, once. Never holds a secret.
 */
struct error {
        char text[512];
};

/**
 * error_set(error, format, ...):
 * Write the reason; what does not fit is cut. Returns -1, so that a failing function can end with it.
 */
int error_set(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/**
 * error_prefix(error, format, ...):
 * Put the formatted text and ": " before the reason that is already there. Returns -1.
 */
int error_prefix(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/**
 * error_set_openssl(error, what):
 * Write `what`, ": " and why OpenSSL failed last on this thread, which forgets its errors; "out of memory" where it does not
 * know. Returns -1.
 */
int error_set_openssl(struct error *error, const char *what);

#endif
