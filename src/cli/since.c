#include "cli/since.h"

#include <string.h>

#include "base/clock.h"
#include "base/number.h"

#define MAX_AGE_MS UINT64_C(315360000000)

int
since_parse(const char *text, int64_t *since_ms, struct error *error)
{
        int64_t now_ms = clock_now_ms();
        uint64_t age_ms;

        if (strpbrk(text, ":-") == NULL) {
                if (number_parse_duration(text, 1, MAX_AGE_MS, &age_ms, error) != 0)
                        return -1;
                *since_ms = now_ms - (int64_t)age_ms;
                return 0;
        }
        if (clock_parse_ms(text, strlen(text), since_ms) != 0)
                return error_set(error,
                                 "'%.64s' is no time in UTC, such as 2026-11-21T03:04:05Z, and no age, "
                                 "such as 2h",
                                 text);
        return *since_ms <= now_ms ? 0 : error_set(error, "%.64s lies ahead", text);
}
