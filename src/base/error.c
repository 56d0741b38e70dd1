#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int
error_set(struct error *error, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        (void)vsnprintf(error->text, sizeof(error->text), format, args);
        va_end(args);
        return -1;
}

int
error_prefix(struct error *error, const char *format, ...)
{
        const struct error reason = *error;
        va_list args;
        size_t len;

        va_start(args, format);
        (void)vsnprintf(error->text, sizeof(error->text), format, args);
        va_end(args);
        for (len = 0; error->text[len] != '\0'; len++)
                ;
        (void)snprintf(error->text + len, sizeof(error->text) - len, ": %s", reason.text);
        return -1;
}
