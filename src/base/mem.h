#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

#include "base/compiler.h"

/**
 * Allocation for start-up, configuration and the command line, where being out of memory has one sensible
 * answer: a line on stderr and, at once, exit status 71 (EX_OSERR). The paths that a delivery takes use malloc and
 * check it. All memory returned is zeroed and is released with free().
 */
void *mem_alloc(size_t size);

/* Grow an array to n elements of the given size; new elements are not zeroed. */
void *mem_resize(void *array, size_t n, size_t size);

char *mem_strdup(const char *text);

/* The first len bytes of text as a string. */
char *mem_strndup(const char *text, size_t len);

/* A formatted string. */
char *mem_printf(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
