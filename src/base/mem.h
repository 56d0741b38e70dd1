#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

#include "base/compiler.h"

/**
 * Allocation for start-up, configuration and the command line, where the only sensible answer to being out of
 * memory is a line on stderr and exit status 71 (EX_OSERR). The path of a delivery uses malloc() and checks
 * it. Return zeroed memory, to be released with free().
 */
void *mem_alloc(size_t size);

/* Grow an array to n elements of the given size; new elements are not zeroed. */
void *mem_resize(void *array, size_t n, size_t size);

char *mem_strdup(const char *text);

/* Return the first len bytes of text as a string. */
char *mem_strndup(const char *text, size_t len);

/* Return a formatted string. */
char *mem_printf(const char *format, ...) PRINTF_LIKE(1, 2);
char *mem_vprintf(const char *format, va_list args) PRINTF_LIKE(1, 0);

/* Exit as these functions do when memory fails. */
_Noreturn void mem_exit(void);

#endif
