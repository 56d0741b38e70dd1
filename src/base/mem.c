#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

void
mem_exit(void)
{
        fputs("out of memory\n", stderr);
        _exit(EX_OSERR); /* exit() would run the cleanup of OpenSSL, which other threads still use */
}

static void *
checked(void *memory)
{
        if (memory == NULL)
                mem_exit();
        return memory;
}

void *
mem_alloc(size_t size)
{
        return checked(calloc(1, size > 0 ? size : 1));
}

void *
mem_resize(void *array, size_t n, size_t size)
{
        return checked(reallocarray(array, n > 0 ? n : 1, size));
}

char *
mem_strdup(const char *text)
{
        return checked(strdup(text));
}

char *
mem_strndup(const char *text, size_t len)
{
        return checked(strndup(text, len));
}

char *
mem_vprintf(const char *format, va_list args)
{
        char *text = NULL;
        int len = vasprintf(&text, format, args);

        return checked(len < 0 ? NULL : text);
}

char *
mem_printf(const char *format, ...)
{
        va_list args;
        char *text;

        va_start(args, format);
        text = mem_vprintf(format, args);
        va_end(args);
        return text;
}
