#include "cli/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"

/* Twice the largest max_body, in bytes. */
#define MAX_SIZE (128u << 20)

/* Ten years. */
#define MAX_AGE_MS UINT64_C(315360000000)

int
arguments_time(const char *text, int64_t *time_ms, struct error *error)
{
        int64_t now_ms = clock_now_ms();
        uint64_t age_ms;

        if (strpbrk(text, ":-") == NULL) {
                if (number_parse_duration(text, 1, MAX_AGE_MS, &age_ms, error) != 0)
                        return -1;
                *time_ms = now_ms - (int64_t)age_ms;
                return 0;
        }
        if (clock_parse_ms(text, strlen(text), time_ms) != 0)
                return error_set(
                    error,
                    "'%.64s' is neither a UTC time, such as 2026-11-21T03:04:05Z, nor an age, such as 2h",
                    text);
        return *time_ms <= now_ms ? 0 : error_set(error, "%.64s is in the future", text);
}

/* Read to the end of the stream, or until more than MAX_SIZE bytes are read; a zero follows them. */
static char *
read_stream(FILE *in, size_t *len)
{
        char *bytes = NULL;
        size_t size = 0;

        *len = 0;
        do {
                size = size == 0 ? 65536 : size * 2;
                bytes = mem_resize(bytes, size, 1);
                *len += fread(bytes + *len, 1, size - *len, in);
        } while (*len == size && size <= MAX_SIZE);
        if (*len < size)
                bytes[*len] = '\0';
        return bytes;
}

char *
arguments_read(const char *file, size_t *len, struct error *error)
{
        int is_stdin = strcmp(file, "-") == 0;
        const char *name = is_stdin ? "standard input" : file;
        FILE *in = is_stdin ? stdin : fopen(file, "re");
        char *bytes;
        int has_failed;

        if (in == NULL) {
                (void)error_set(error, "%s: %s", name, strerror(errno));
                return NULL;
        }
        bytes = read_stream(in, len);
        has_failed = ferror(in);
        if (has_failed)
                (void)error_set(error, "%s: %s", name, strerror(errno));
        else if (*len > MAX_SIZE)
                (void)error_set(error, "%s is larger than 128 MiB", name);
        (void)fclose(in);
        if (!has_failed && *len <= MAX_SIZE)
                return bytes;
        free(bytes);
        return NULL;
}

int
arguments_kind_matches(const char *filter, const char *kind, size_t len)
{
        size_t filter_len = strlen(filter);

        if (strcmp(filter, "*") == 0)
                return 1;
        if (filter_len >= 2 && strcmp(filter + filter_len - 2, ".*") == 0)
                return len >= filter_len && memcmp(filter, kind, filter_len - 1) == 0;
        return len == filter_len && memcmp(filter, kind, len) == 0;
}

int
arguments_kind_may_match(const char *filter, const struct topic_table *topics, const struct topic_rule *rule)
{
        size_t len = strlen(filter);

        if (arguments_kind_matches(filter, rule->pattern, strlen(rule->pattern)))
                return 1;
        if (strchr(filter, '*') == NULL)
                return topic_table_find(topics, filter, len) == rule;
        /* The filter may be narrower than the rule: a.b.* within a.* */
        return len >= 2 && strcmp(filter + len - 2, ".*") == 0 &&
               arguments_kind_matches(rule->pattern, filter, len);
}
