#include "cli/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"

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

/* Read to the end of the stream, with room for another byte, or until more than max bytes are read. */
static char *
read_stream(FILE *in, size_t max, size_t *len)
{
        char *bytes = NULL;
        size_t size = 0;

        *len = 0;
        do {
                size = size == 0 ? 65536 : size * 2;
                bytes = mem_resize(bytes, size, 1);
                *len += fread(bytes + *len, 1, size - *len, in);
        } while (*len == size && size <= max);
        return bytes;
}

static char *
read_file(const char *file, size_t max, const char *limit, size_t *len, struct error *error)
{
        int is_stdin = strcmp(file, "-") == 0;
        FILE *in = is_stdin ? stdin : fopen(file, "re");
        char *bytes = NULL;

        errno = in == NULL ? errno : 0;
        if (in != NULL)
                bytes = read_stream(in, max, len);
        if (in == NULL || ferror(in))
                (void)error_set(error, "%s: %s", is_stdin ? "standard input" : file, strerror(errno));
        else if (*len > max)
                (void)error_set(error, "%s is larger than %s", is_stdin ? "standard input" : file, limit);
        else {
                if (!is_stdin)
                        (void)fclose(in);
                return bytes;
        }
        if (in != NULL && !is_stdin)
                (void)fclose(in);
        free(bytes);
        return NULL;
}

char *
arguments_body(const char *file, size_t *len, struct error *error)
{
        return read_file(file, ARGUMENTS_MAX_BODY, "the limit for a body (128 MiB)", len, error);
}

char *
arguments_headers(const char *file, struct error *error)
{
        size_t len;
        char *text =
            read_file(file, ARGUMENTS_MAX_HEADERS, "16 MiB; save only the request in question", &len, error);

        if (text == NULL)
                return NULL;
        text[len] = '\0';
        if (strlen(text) == len)
                return text;
        (void)error_set(error, "%s contains a NUL byte", file);
        free(text);
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
