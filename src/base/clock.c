#include "base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t
read_clock(clockid_t id)
{
        struct timespec now;

        (void)clock_gettime(id, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t
clock_now_ms(void)
{
        return read_clock(CLOCK_REALTIME);
}

int64_t
clock_monotonic_ms(void)
{
        return read_clock(CLOCK_MONOTONIC);
}

int64_t
clock_boot_ms(void)
{
        return read_clock(CLOCK_BOOTTIME);
}

int64_t
clock_coarse_ms(void)
{
        return read_clock(CLOCK_MONOTONIC_COARSE);
}

int64_t
clock_monotonic_us(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t
clock_monotonic_ns(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void
clock_sleep_ms(int64_t ms)
{
        const struct timespec duration = {ms / 1000, ms % 1000 * 1000000L};

        if (ms > 0)
                (void)nanosleep(&duration, NULL);
}

/* Write a number with n digits, then a separator. Return the position after both. */
static char *
put_digits(char *text, int value, int n, char after)
{
        for (int i = n; i > 0; i--) {
                text[i - 1] = (char)('0' + value % 10);
                value /= 10;
        }
        text[n] = after;
        return text + n + 1;
}

char *
clock_format_s(int64_t s, char text[CLOCK_RFC3339_SIZE])
{
        static const int64_t year_0 = -62167219200, year_10000 = 253402300800;
        time_t seconds = (time_t)(s < year_0 ? year_0 : s >= year_10000 ? year_10000 - 1 : s);
        struct tm tm;
        char *at;

        (void)gmtime_r(&seconds, &tm);
        at = put_digits(text, tm.tm_year + 1900, 4, '-');
        at = put_digits(at, tm.tm_mon + 1, 2, '-');
        at = put_digits(at, tm.tm_mday, 2, 'T');
        at = put_digits(at, tm.tm_hour, 2, ':');
        at = put_digits(at, tm.tm_min, 2, ':');
        at = put_digits(at, tm.tm_sec, 2, 'Z');
        *at = '\0';
        return text;
}

char *
clock_format_ms(int64_t ms, char text[CLOCK_RFC3339_SIZE])
{
        int64_t s = ms / 1000 - (ms % 1000 < 0 ? 1 : 0);
        char *at = clock_format_s(s, text) + sizeof("2026-11-21T03:04:05") - 1;

        *at++ = '.';
        *put_digits(at, (int)(ms - s * 1000), 3, 'Z') = '\0';
        return text;
}

/* Read n digits at text. Return their value, or -1. */
static int
digits(const char *text, int n)
{
        int value = 0;

        for (int i = 0; i < n; i++) {
                if (!isdigit((unsigned char)text[i]))
                        return -1;
                value = value * 10 + (text[i] - '0');
        }
        return value;
}

static int
days_in_month(int year, int month)
{
        static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return days[month - 1] + (month == 2 && leap);
}

int
clock_is_utc_timestamp(const char *text, size_t len)
{
        static const size_t fixed = sizeof("2026-11-21T03:04:05") - 1;
        int year, month, day;
        size_t i = fixed;

        if (len <= fixed || text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') ||
            text[13] != ':' || text[16] != ':')
                return 0;
        year = digits(text, 4);
        month = digits(text + 5, 2);
        day = digits(text + 8, 2);
        if (year < 0 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
                return 0;
        if ((unsigned)digits(text + 11, 2) > 23 || (unsigned)digits(text + 14, 2) > 59 ||
            (unsigned)digits(text + 17, 2) > 60)
                return 0;
        if (text[i] == '.') {
                size_t start = ++i;

                while (i < len && isdigit((unsigned char)text[i]))
                        i++;
                if (i == start)
                        return 0;
        }
        if (len - i == 1)
                return text[i] == 'Z' || text[i] == 'z';
        return len - i == 6 && memcmp(text + i, "+00:00", 6) == 0;
}

int
clock_parse_ms(const char *text, size_t len, int64_t *ms)
{
        static const int factors[] = {100, 10, 1};
        struct tm tm = {0};

        if (!clock_is_utc_timestamp(text, len))
                return -1;
        tm.tm_year = digits(text, 4) - 1900;
        tm.tm_mon = digits(text + 5, 2) - 1;
        tm.tm_mday = digits(text + 8, 2);
        tm.tm_hour = digits(text + 11, 2);
        tm.tm_min = digits(text + 14, 2);
        tm.tm_sec = digits(text + 17, 2);
        *ms = (int64_t)timegm(&tm) * 1000;
        if (text[19] != '.')
                return 0;
        for (size_t i = 0; i < 3 && isdigit((unsigned char)text[20 + i]); i++)
                *ms += (text[20 + i] - '0') * factors[i];
        return 0;
}
