#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

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
        len = strlen(error->text);
        (void)snprintf(error->text + len, sizeof(error->text) - len, ": %s", reason.text);
        return -1;
}

int
error_set_openssl(struct error *error, const char *what)
{
        const char *data = "";
        unsigned long code = ERR_peek_last_error_data(&data, NULL);
        const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

        if (reason == NULL || ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE)
                (void)error_set(error, "%s: out of memory", what);
        else
                (void)error_set(error, "%s: OpenSSL: %s%s%s", what, reason, *data == '\0' ? "" : ": ", data);
        ERR_clear_error();
        return -1;
}
