#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

/**
 * suggest_closest(name, candidates, n):
 * The candidate that a misspelt name most likely meant: at most two edits away (one for names under five letters),
 * transposed neighbours being one edit. NULL when none is that close. Names over 63 bytes have none.
 */
const char *suggest_closest(const char *name, const char *const *candidates, size_t n);

#endif
