#include "model/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/json_memory.h"
#include "base/text.h"
#include "model/documented_field.h"
#include "model/pointer.h"

/* The watches: the three pointers of the source's rules, then the documented fields. */
enum { WATCH_KIND, WATCH_KEY, WATCH_SUBJECT, WATCH_FIELDS };

/* A copy of a value: yajl's copy is only valid during the callback. */
struct kept {
        char *data;
        size_t len;
        size_t size;
        int present;
};

struct decoder {
        struct pointer_watch watches[POINTER_MAX_WATCHES];
        size_t n_watches;
        struct pointer_walk walk;
        struct pointer_level levels[DECODE_MAX_DEPTH];
        struct kept kept[WATCH_FIELDS];
        enum json_type kind_type;
        struct decoded *decoded;
        struct kept mended; /* the corrected body for yajl, if it differs */
        int out_of_memory;
};

struct decoder *
decoder_new(void)
{
        struct decoder *decoder = calloc(1, sizeof(*decoder));

        if (decoder == NULL)
                return NULL;
        decoder->n_watches = WATCH_FIELDS + documented_field_count();
        for (size_t i = 0; i < documented_field_count(); i++)
                decoder->watches[WATCH_FIELDS + i] =
                    (struct pointer_watch){documented_field_at(i)->segments,
                                           documented_field_at(i)->n_segments};
        return decoder;
}

void
decoder_free(struct decoder *decoder)
{
        if (decoder == NULL)
                return;
        for (size_t i = 0; i < WATCH_FIELDS; i++)
                free(decoder->kept[i].data);
        free(decoder->mended.data);
        free(decoder);
}

/* Set the reason why the body is refused. Return 0, which makes yajl stop. */
static int
give_up(struct decoder *decoder, const char *reason)
{
        (void)snprintf(decoder->decoded->detail, sizeof(decoder->decoded->detail), "%s", reason);
        return 0;
}

static int
keep(struct decoder *decoder, struct kept *kept, struct span text)
{
        if (kept->data == NULL || text.len > kept->size) {
                char *data = realloc(kept->data, text.len > 64 ? text.len : 64);

                if (data == NULL) {
                        decoder->out_of_memory = 1;
                        return 0;
                }
                kept->data = data;
                kept->size = text.len > 64 ? text.len : 64;
        }
        memcpy(kept->data, text.data, text.len);
        kept->len = text.len;
        kept->present = 1;
        return 1;
}

static void
check_fields(struct decoder *decoder, uint32_t met, enum json_type type, struct span text)
{
        char *fault = decoder->decoded->field_fault;

        for (size_t i = 0; i < documented_field_count(); i++) {
                if (!(met & UINT32_C(1) << (WATCH_FIELDS + i)) || documented_field_accepts(i, type, text) ||
                    fault[0] != '\0')
                        continue;
                (void)snprintf(fault, DECODE_DETAIL_SIZE, "%s must be %s", documented_field_at(i)->name,
                               documented_field_at(i)->must_be);
        }
}

/* Handle a value: a scalar, or the beginning of an object or array. Return 0 to stop. */
static int
on_value(struct decoder *decoder, enum json_type type, struct span text)
{
        uint32_t met;

        if (decoder->walk.depth == 0 && type != JSON_OBJECT)
                return give_up(decoder, "the body is not a JSON object");
        met = pointer_walk_value(&decoder->walk);
        if (met == 0)
                return 1;
        check_fields(decoder, met, type, text);
        if (met & 1u << WATCH_KIND)
                decoder->kind_type = type;
        for (size_t i = 0; i < WATCH_FIELDS; i++) {
                struct kept *kept = &decoder->kept[i];

                if (!(met & 1u << i))
                        continue;
                kept->present = 0;
                if (type == JSON_STRING || (type == JSON_NUMBER && i == WATCH_KEY)) {
                        if (!keep(decoder, kept, text))
                                return 0;
                }
        }
        return 1;
}

static int
on_null(void *arg)
{
        return on_value(arg, JSON_NULL, (struct span){NULL, 0});
}

static int
on_boolean(void *arg, int value)
{
        (void)value;
        return on_value(arg, JSON_BOOLEAN, (struct span){NULL, 0});
}

static int
on_number(void *arg, const char *text, size_t len)
{
        return on_value(arg, JSON_NUMBER, (struct span){text, len});
}

static int
on_string(void *arg, const unsigned char *text, size_t len)
{
        return on_value(arg, JSON_STRING, (struct span){(const char *)text, len});
}

static int
on_name(void *arg, const unsigned char *name, size_t len)
{
        struct decoder *decoder = arg;
        uint32_t again = pointer_walk_name(&decoder->walk, (struct span){(const char *)name, len});

        if (again & 1u << WATCH_KIND)
                return give_up(decoder, "the member that names the kind is duplicated");
        for (size_t i = 0; i < WATCH_FIELDS; i++) {
                if (again & 1u << i)
                        decoder->kept[i].present =
                            0; /* the last one counts, even if the pointer leads nowhere in it */
        }
        return 1;
}

static int
open_level(struct decoder *decoder, enum json_type type)
{
        if (!on_value(decoder, type, (struct span){NULL, 0}))
                return 0;
        if (decoder->walk.depth == DECODE_MAX_DEPTH)
                return give_up(decoder, "the body is nested more than 64 levels deep");
        pointer_walk_enter(&decoder->walk, type == JSON_ARRAY);
        return 1;
}

static int
on_object(void *arg)
{
        return open_level(arg, JSON_OBJECT);
}

static int
on_array(void *arg)
{
        return open_level(arg, JSON_ARRAY);
}

static int
on_end(void *arg)
{
        struct decoder *decoder = arg;

        pointer_walk_leave(&decoder->walk);
        return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_name,
    .yajl_end_map = on_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_end,
};

static void
start(struct decoder *decoder, const struct event_rules *rules, struct decoded *decoded)
{
        const struct pointer *pointers[WATCH_FIELDS] = {&rules->kind, &rules->key, &rules->subject};

        for (size_t i = 0; i < WATCH_FIELDS; i++) {
                decoder->watches[i] = (struct pointer_watch){(const char *const *)pointers[i]->segments,
                                                             pointers[i]->n_segments};
                decoder->kept[i].present = 0;
        }
        decoder->walk = (struct pointer_walk){decoder->watches, decoder->n_watches, 0, decoder->levels};
        decoder->kind_type = JSON_NULL;
        decoder->decoded = decoded;
        decoder->out_of_memory = 0;
        memset(decoded, 0, sizeof(*decoded));
}

/* Return the UTF-16 code unit of the escape \uXXXX at an offset, or -1. */
static int
escaped_unit(struct span body, size_t at)
{
        int unit = 0, digit;

        if (at > body.len || body.len - at < 6 || memcmp(body.data + at, "\\u", 2) != 0)
                return -1;
        for (size_t i = at + 2; i < at + 6; i++) {
                digit = bytes_hex_digit(body.data[i]);
                if (digit < 0)
                        return -1;
                unit = unit << 4 | digit;
        }
        return unit;
}

/* Return the offset of the next backslash, or the body's length. */
static size_t
next_backslash(struct span body, size_t from)
{
        const char *found = from < body.len ? memchr(body.data + from, '\\', body.len - from) : NULL;

        return found == NULL ? body.len : (size_t)(found - body.data);
}

/*
 * Replace unpaired surrogates by U+FFFD, whose escape has the same length. They are valid JSON (RFC 8259
 * section 8.2), but yajl turns them into invalid UTF-8. Return 0 when out of memory.
 */
static int
mend_surrogates(struct decoder *decoder, struct span *body)
{
        size_t step;

        for (size_t i = next_backslash(*body, 0); i < body->len; i = next_backslash(*body, i + step)) {
                int unit = escaped_unit(*body, i);

                step = unit < 0 ? 2 : 6;
                if ((unit & ~0x7ff) != 0xd800)
                        continue;
                if (unit < 0xdc00 && (escaped_unit(*body, i + 6) & ~0x3ff) == 0xdc00) {
                        step = 12;
                        continue;
                }
                if (body->data != decoder->mended.data) {
                        if (!keep(decoder, &decoder->mended, *body))
                                return 0;
                        body->data = decoder->mended.data;
                }
                memcpy(decoder->mended.data + i, "\\ufffd", 6);
        }
        return 1;
}

/* Set the detail to yajl's message, on one line. */
static void
describe_error(yajl_handle yajl, size_t consumed, struct decoded *decoded)
{
        unsigned char *text = yajl_get_error(yajl, 0, NULL, 0);

        (void)snprintf(decoded->detail, sizeof(decoded->detail), "%s near byte %zu",
                       text == NULL ? "not JSON" : (const char *)text, consumed);
        if (text != NULL)
                yajl_free_error(yajl, text);
        for (char *c = decoded->detail; *c != '\0'; c++) {
                if (*c == '\n')
                        *c = ' ';
        }
}

/* Return whether the body is a single JSON text and nothing stopped the parser; else set decoded->detail. */
static int
parse_within(struct json_memory *memory, struct decoder *decoder, struct span body)
{
        yajl_handle yajl = yajl_alloc(&callbacks, &memory->functions, decoder);
        yajl_status status;
        size_t consumed;

        (void)yajl_config(yajl, yajl_dont_validate_strings, 1); /* text_is_utf8() has done it, faster */
        /* Otherwise yajl ignores an unterminated string after the object. */
        (void)yajl_config(yajl, yajl_allow_trailing_garbage, 1);
        status = yajl_parse(yajl, (const unsigned char *)body.data, body.len);
        consumed = yajl_get_bytes_consumed(yajl);
        if (status == yajl_status_ok)
                status = yajl_complete_parse(yajl);
        if (status == yajl_status_error)
                describe_error(yajl, consumed, decoder->decoded);
        yajl_free(yajl);
        if (status != yajl_status_ok)
                return 0;
        return json_is_space(body.data + consumed, body.len - consumed) ||
               give_up(decoder, "there is data after the JSON object");
}

/* Likewise; also return 0 when out of memory. */
static int
parse(struct decoder *decoder, struct span body)
{
        struct json_memory memory;
        int result;

        json_memory_init(&memory);
        if (setjmp(memory.failed) == 0) {
                result = parse_within(&memory, decoder, body);
        } else {
                decoder->out_of_memory = 1;
                result = 0;
        }
        json_memory_clear(&memory);
        return result;
}

static struct span
kept_span(const struct kept *kept)
{
        return kept->present ? (struct span){kept->data, kept->len} : (struct span){NULL, 0};
}

int
decoder_run(struct decoder *decoder, const struct event_rules *rules, struct span body,
            struct decoded *decoded, enum decode_result *result)
{
        start(decoder, rules, decoded);
        *result = DECODE_MALFORMED_JSON;
        if (body.len == 0)
                return give_up(decoder, "the body is empty");
        if (!text_is_utf8(body.data, body.len))
                return give_up(decoder, "the body is not valid UTF-8");
        if (memchr(body.data, '\v', body.len) != NULL || memchr(body.data, '\f', body.len) != NULL)
                return give_up(decoder, "a control character that JSON does not allow"); /* yajl does */
        if (!mend_surrogates(decoder, &body) || !parse(decoder, body))
                return decoder->out_of_memory ? -1 : 0;

        decoded->kind = kept_span(&decoder->kept[WATCH_KIND]);
        decoded->key = kept_span(&decoder->kept[WATCH_KEY]);
        decoded->subject = kept_span(&decoder->kept[WATCH_SUBJECT]);
        *result = DECODE_OK;
        if (decoder->kind_type == JSON_NULL) {
                *result = DECODE_MISSING_KIND;
                (void)snprintf(decoded->detail, sizeof(decoded->detail), "nothing at %s", rules->kind.text);
        } else if (decoder->kind_type != JSON_STRING) {
                *result = DECODE_INVALID_KIND;
                (void)snprintf(decoded->detail, sizeof(decoded->detail), "the kind at %s must be a string",
                               rules->kind.text);
        }
        return 0;
}
