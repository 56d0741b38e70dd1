#include "model/trace.h"

#include <string.h>

static const char hex[] = "0123456789abcdef";

/* Whether text begins with exactly n lowercase hexadecimal digits, not all of them zero if that is forbidden. */
static int
has_hex(const char *text, size_t n, int may_be_zero)
{
        return strspn(text, hex) == n && (may_be_zero || strspn(text, "0") < n);
}

int
trace_parent_is_valid(const char *value)
{
        size_t len = strlen(value);

        if (len < 55 || value[2] != '-' || value[35] != '-' || value[52] != '-')
                return 0;
        if (!has_hex(value, 2, 1) || !has_hex(value + 3, 32, 0) || !has_hex(value + 36, 16, 0) ||
            !has_hex(value + 53, 2, 1))
                return 0;
        if (memcmp(value, "ff", 2) == 0)
                return 0;
        return len == 55 || (memcmp(value, "00", 2) != 0 && value[55] == '-' && len <= 512);
}

int
trace_state_is_valid(const char *value)
{
        size_t len = strlen(value);

        if (len < 1 || len > 512)
                return 0;
        for (; *value != '\0'; value++) {
                if (*value < 0x20 || *value > 0x7e)
                        return 0;
        }
        return 1;
}
