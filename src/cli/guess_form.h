#ifndef CLI_GUESS_FORM_H
#define CLI_GUESS_FORM_H

#include <stdint.h>

#include "base/compiler.h"
#include "model/signature.h"

/* What is wrong with how a signature is written, as clauses; NULL where nothing is. */
struct guess_form {
        const char *prefix;
        const char *digits;
};

/**
 * guess_form_read(text, signature, form):
 * Read a signature however it is written: without `sha256=` or with something like it, in hexadecimal of either case, in
 * base64. Returns 0, or -1 when there are no 32 bytes in it.
 */
int guess_form_read(const char *text, uint8_t signature[SIGNATURE_SIZE], struct guess_form *form) MUST_CHECK;

#endif
