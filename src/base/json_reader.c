/*
 * The only user of yajl's parser. Version 2.1.0, the last one, needs these workarounds:
 *
 * - It does not check its allocations; those here exit when memory fails.
 * - It accepts vertical tabs and form feeds as white space.
 * - It turns an escaped half of a surrogate pair into invalid UTF-8; such escapes are replaced beforehand.
 * - It ignores an unterminated string after the value; so trailing data is allowed, and checked here.
 * - Its own check of UTF-8 is slower than text_is_utf8().
 */
#include "base/json_reader.h"

#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/text.h"

struct reader {
        const struct json_events *events;
        void *arg;
        struct error *error;
        size_t depth;
        size_t max_depth;
};

static void *
resize(void *arg, void *data, size_t size)
{
        void *resized = pool_resize(data, size);

        (void)arg;
        if (resized == NULL)
                mem_exit();
        return resized;
}

static void *
allocate(void *arg, size_t size)
{
        return resize(arg, NULL, size);
}

static void
release(void *arg, void *data)
{
        (void)arg;
        pool_free(data);
}

/* yajl's functions return 0 to stop. */
static int
report(struct reader *reader, enum json_type type, const char *text, size_t len)
{
        return reader->events->value(reader->arg, type, text, len) == 0;
}

static int
on_null(void *arg)
{
        return report(arg, JSON_NULL, NULL, 0);
}

static int
on_boolean(void *arg, int value)
{
        return value ? report(arg, JSON_BOOLEAN, "true", 4) : report(arg, JSON_BOOLEAN, "false", 5);
}

static int
on_number(void *arg, const char *text, size_t len)
{
        return report(arg, JSON_NUMBER, text, len);
}

static int
on_string(void *arg, const unsigned char *text, size_t len)
{
        return report(arg, JSON_STRING, (const char *)text, len);
}

static int
on_name(void *arg, const unsigned char *text, size_t len)
{
        struct reader *reader = arg;

        return reader->events->name(reader->arg, (const char *)text, len) == 0;
}

static int
enter(struct reader *reader, enum json_type type)
{
        if (reader->depth == reader->max_depth) {
                (void)error_set(reader->error, "the text is nested more than %zu levels deep",
                                reader->max_depth);
                return 0;
        }
        reader->depth++;
        return report(reader, type, NULL, 0);
}

static int
leave(struct reader *reader, enum json_type type)
{
        reader->depth--;
        return reader->events->end(reader->arg, type) == 0;
}

static int
on_object(void *arg)
{
        return enter(arg, JSON_OBJECT);
}

static int
on_object_end(void *arg)
{
        return leave(arg, JSON_OBJECT);
}

static int
on_array(void *arg)
{
        return enter(arg, JSON_ARRAY);
}

static int
on_array_end(void *arg)
{
        return leave(arg, JSON_ARRAY);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number, /* the literal, so that no number is too large */
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_name,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

/* Set the error to yajl's message, which ends with a newline. */
static void
describe_error(struct reader *reader, yajl_handle yajl, size_t consumed)
{
        unsigned char *text = yajl_get_error(yajl, 0, NULL, 0);
        const char *message = (const char *)text;

        (void)error_set(reader->error, "not JSON: %.*s near byte %zu", (int)strcspn(message, "\n"), message,
                        consumed);
        yajl_free_error(yajl, text);
}

/* Return whether the text is nothing but white space (RFC 8259 section 2). */
static int
is_space(const char *text, size_t len)
{
        while (len > 0 && memchr(" \t\r\n", *text, 4) != NULL) {
                text++;
                len--;
        }
        return len == 0;
}

static int
parse(struct reader *reader, const char *text, size_t len)
{
        yajl_alloc_funcs functions = {allocate, resize, release, NULL};
        yajl_handle yajl = yajl_alloc(&callbacks, &functions, reader);
        yajl_status status;
        size_t consumed;

        (void)yajl_config(yajl, yajl_dont_validate_strings, 1);
        (void)yajl_config(yajl, yajl_allow_trailing_garbage, 1);
        status = yajl_parse(yajl, (const unsigned char *)text, len);
        consumed = yajl_get_bytes_consumed(yajl);
        if (status == yajl_status_ok)
                status = yajl_complete_parse(yajl);
        if (status == yajl_status_error)
                describe_error(reader, yajl, consumed);
        yajl_free(yajl);
        if (status != yajl_status_ok)
                return -1;
        if (is_space(text + consumed, len - consumed))
                return 0;
        return error_set(reader->error, "not JSON: data after the value");
}

/* Return the UTF-16 code unit of the escape \uXXXX at an offset, or -1. */
static int
escaped_unit(const char *text, size_t len, size_t at)
{
        int unit = 0, digit;

        if (at > len || len - at < 6 || memcmp(text + at, "\\u", 2) != 0)
                return -1;
        for (size_t i = at + 2; i < at + 6; i++) {
                digit = bytes_hex_digit(text[i]);
                if (digit < 0)
                        return -1;
                unit = unit << 4 | digit;
        }
        return unit;
}

/* Return the offset of the next backslash, or len. */
static size_t
next_backslash(const char *text, size_t len, size_t from)
{
        const char *found = from < len ? memchr(text + from, '\\', len - from) : NULL;

        return found == NULL ? len : (size_t)(found - text);
}

/* Return the offset of the next escaped half of a surrogate pair, or len. */
static size_t
next_half(const char *text, size_t len, size_t from)
{
        size_t step;

        for (size_t i = next_backslash(text, len, from); i < len; i = next_backslash(text, len, i + step)) {
                int unit = escaped_unit(text, len, i);

                step = unit < 0 ? 2 : 6;
                if ((unit & ~0x7ff) != 0xd800)
                        continue;
                if (unit >= 0xdc00 || (escaped_unit(text, len, i + 6) & ~0x3ff) != 0xdc00)
                        return i;
                step = 12;
        }
        return len;
}

/* Parse a text with its halves of surrogate pairs, the first at an offset, replaced by U+FFFD. */
static int
parse_mended(struct reader *reader, const char *text, size_t len, size_t half)
{
        char *mended = mem_resize(NULL, len, 1);
        int result;

        memcpy(mended, text, len);
        for (; half < len; half = next_half(mended, len, half + 6))
                memcpy(mended + half, "\\ufffd", 6);
        result = parse(reader, mended, len);
        free(mended);
        return result;
}

int
json_read(const char *text, size_t len, size_t max_depth, const struct json_events *events, void *arg,
          struct error *error)
{
        struct reader reader = {.events = events, .arg = arg, .error = error, .max_depth = max_depth};
        size_t half;

        if (len == 0)
                return error_set(error, "the text is empty");
        if (!text_is_utf8(text, len))
                return error_set(error, "the text is not valid UTF-8");
        if (memchr(text, '\v', len) != NULL || memchr(text, '\f', len) != NULL)
                return error_set(error, "a control character that JSON does not allow");
        half = next_half(text, len, 0);
        return half < len ? parse_mended(&reader, text, len, half) : parse(&reader, text, len);
}
