#include "base/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SPAN_MAX_S 1e15

struct unit {
        const char *name;
        uint64_t factor;
};

/* Smallest first. */
static const struct unit size_units[] = {
    {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {NULL, 0}};
static const struct unit duration_units[] = {{"ms", 1},      {"s", 1000},     {"min", 60000},
                                             {"h", 3600000}, {"d", 86400000}, {NULL, 0}};

/* Read the digits at the start of text; *end is what follows them. */
static int
parse_digits(const char *text, uint64_t *value, const char **end)
{
        uint64_t n = 0;
        const char *p = text;

        for (; isdigit((unsigned char)*p); p++) {
                if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
                        return -1;
        }
        *value = n;
        *end = p;
        return p == text ? -1 : 0;
}

int
number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *value, struct error *error)
{
        const char *end;

        if (parse_digits(text, value, &end) != 0 || *end != '\0')
                return error_set(error, "'%.64s' is not a whole number", text);
        if (*value < min || *value > max)
                return error_set(error, "%" PRIu64 " is not between %" PRIu64 " and %" PRIu64, *value, min,
                                 max);
        return 0;
}

static char *
format_units(uint64_t value, const struct unit *units, char text[NUMBER_TEXT_SIZE])
{
        const struct unit *best = units;

        for (const struct unit *u = units; u->name != NULL; u++) {
                if (value != 0 && value % u->factor == 0)
                        best = u;
        }
        (void)snprintf(text, NUMBER_TEXT_SIZE, "%" PRIu64 "%s", value / best->factor, best->name);
        return text;
}

static const char *
names_of(const struct unit *units)
{
        return units == size_units ? "B, KiB, MiB, GiB" : "ms, s, min, h, d";
}

/* Return the unit with which a word has the longest beginning in common, in any case; NULL: none, or two. */
static const char *
closest_unit(const char *word, const struct unit *units)
{
        const char *closest = NULL;
        size_t most = 0;

        for (; units->name != NULL; units++) {
                size_t n = 0;

                while (word[n] != '\0' &&
                       tolower((unsigned char)word[n]) == tolower((unsigned char)units->name[n]))
                        n++;
                if (n >= most)
                        closest = n > most ? units->name : NULL;
                if (n > most)
                        most = n;
        }
        return closest;
}

/* Report what follows the digits of a text and is no unit. */
static int
report_unit(const char *text, const char *word, const struct unit *units, struct error *error)
{
        int digits = word - text > 32 ? 32 : (int)(word - text);
        const char *closest = closest_unit(word + strspn(word, " \t"), units);

        if (closest != NULL)
                return error_set(error, "'%.32s' is not a unit; did you mean %.*s%s? The units are %s", word,
                                 digits, text, closest, names_of(units));
        return error_set(error, "'%.32s' is not a unit; the units are %s", word, names_of(units));
}

static int
parse_units(const char *text, const struct unit *units, uint64_t range[2], uint64_t *value,
            struct error *error)
{
        char low[NUMBER_TEXT_SIZE], high[NUMBER_TEXT_SIZE];
        const char *end;
        const struct unit *unit = units;

        if (parse_digits(text, value, &end) != 0)
                return error_set(error, "'%.64s' is not a number with a unit, such as 30%s", text,
                                 units[1].name);
        if (*end == '\0')
                return error_set(error, "%.32s needs a unit: one of %s", text, names_of(units));
        while (unit->name != NULL && strcmp(unit->name, end) != 0)
                unit++;
        if (unit->name == NULL)
                return report_unit(text, end, units, error);
        if (__builtin_mul_overflow(*value, unit->factor, value) || *value < range[0] || *value > range[1])
                return error_set(error, "%.64s is not between %s and %s", text,
                                 format_units(range[0], units, low), format_units(range[1], units, high));
        return 0;
}

int
number_parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *bytes, struct error *error)
{
        return parse_units(text, size_units, (uint64_t[]){min, max}, bytes, error);
}

int
number_parse_duration(const char *text, uint64_t min, uint64_t max, uint64_t *ms, struct error *error)
{
        return parse_units(text, duration_units, (uint64_t[]){min, max}, ms, error);
}

char *
number_format_duration(uint64_t ms, char text[NUMBER_TEXT_SIZE])
{
        return format_units(ms, duration_units, text);
}

char *
number_format_span(double seconds, char text[NUMBER_TEXT_SIZE])
{
        unsigned long s = seconds > 0 && seconds < SPAN_MAX_S ? (unsigned long)seconds : 0;

        if (s >= 2 * 86400)
                (void)snprintf(text, NUMBER_TEXT_SIZE, "%lu d %lu h", s / 86400, s % 86400 / 3600);
        else if (s >= 3600)
                (void)snprintf(text, NUMBER_TEXT_SIZE, "%lu h %lu min", s / 3600, s % 3600 / 60);
        else if (s >= 60)
                (void)snprintf(text, NUMBER_TEXT_SIZE, "%lu min %lu s", s / 60, s % 60);
        else
                (void)snprintf(text, NUMBER_TEXT_SIZE, "%lu s", s);
        return text;
}
