#include "model/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "model/pointer.h"

static const char a_string[] = "a string";
static const char a_boolean[] = "true or false";
static const char an_object[] = "an object";
static const char a_time[] = "an ISO 8601 UTC timestamp";

/*
 * The fields that the service documents, in `data` and, without the first segment, at the top level: the
 * clearance rejection record of its status poll. They are checked if present; null counts as absent.
 */
static const struct documented_field {
        const char *name; /* for messages */
        const char *const segments[3];
        size_t n_segments;
        const char *must_be;
} fields[] = {
    {"data.clearanceStatus", {"data", "clearanceStatus"}, 2, a_string},
    {"data.terminal", {"data", "terminal"}, 2, a_boolean},
    {"data.rejectedAt", {"data", "rejectedAt"}, 2, a_time},
    {"data.error", {"data", "error"}, 2, an_object},
    {"data.error.source", {"data", "error", "source"}, 3, a_string},
    {"data.error.code", {"data", "error", "code"}, 3, a_string},
    {"data.error.message", {"data", "error", "message"}, 3, a_string},
    {"data.error.detail", {"data", "error", "detail"}, 3, a_string},
};

/*
 * The watches: the three pointers of the source's rules, then the documented fields in `data`, then those at
 * the top level.
 */
enum {
        WATCH_KIND,
        WATCH_KEY,
        WATCH_SUBJECT,
        N_RULES,
        WATCH_DATA = N_RULES,
        WATCH_TOP = WATCH_DATA + ARRAY_LEN(fields),
        N_WATCHES = WATCH_TOP + ARRAY_LEN(fields)
};
_Static_assert(N_WATCHES <= POINTER_MAX_WATCHES, "a bit for each watch");

/* A copy of a value, whose text is only valid during the event. */
struct kept {
        char *data;
        size_t len;
        size_t size;
        int present;
};

struct decoder {
        struct pointer_watch watches[N_WATCHES];
        struct pointer_walk walk;
        struct pointer_level levels[DECODE_MAX_DEPTH];
        struct kept kept[N_RULES];
        enum json_type kind_type;
        struct decoded *decoded;
        struct error error;
        int out_of_memory;
};

struct decoder *
decoder_new(void)
{
        struct decoder *decoder = calloc(1, sizeof(*decoder));

        if (decoder == NULL)
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                const struct documented_field *field = &fields[i];

                decoder->watches[WATCH_DATA + i] = (struct pointer_watch){field->segments, field->n_segments};
                decoder->watches[WATCH_TOP + i] =
                    (struct pointer_watch){field->segments + 1, field->n_segments - 1};
        }
        return decoder;
}

void
decoder_free(struct decoder *decoder)
{
        if (decoder == NULL)
                return;
        for (size_t i = 0; i < N_RULES; i++)
                free(decoder->kept[i].data);
        free(decoder);
}

/* Return 0, or -1 when out of memory. */
static int
keep(struct decoder *decoder, struct kept *kept, struct span text)
{
        if (kept->data == NULL || text.len > kept->size) {
                char *data = realloc(kept->data, text.len > 64 ? text.len : 64);

                if (data == NULL) {
                        decoder->out_of_memory = 1;
                        return -1;
                }
                kept->data = data;
                kept->size = text.len > 64 ? text.len : 64;
        }
        memcpy(kept->data, text.data, text.len);
        kept->len = text.len;
        kept->present = 1;
        return 0;
}

static int
accepts(const struct documented_field *field, enum json_type type, struct span text)
{
        if (type == JSON_NULL)
                return 1;
        if (field->must_be == a_boolean)
                return type == JSON_BOOLEAN;
        if (field->must_be == an_object)
                return type == JSON_OBJECT;
        if (field->must_be == a_time)
                return type == JSON_STRING && clock_is_utc_timestamp(text.data, text.len);
        return type == JSON_STRING;
}

/* Describe the first documented field that has a wrong value. */
static void
check_fields(struct decoder *decoder, uint32_t met, enum json_type type, struct span text)
{
        char *fault = decoder->decoded->field_fault;

        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                int in_data = (met & UINT32_C(1) << (WATCH_DATA + i)) != 0;
                int at_top = (met & UINT32_C(1) << (WATCH_TOP + i)) != 0;

                if ((in_data || at_top) && fault[0] == '\0' && !accepts(&fields[i], type, text))
                        (void)snprintf(fault, DECODE_DETAIL_SIZE, "%s must be %s",
                                       fields[i].name + (at_top ? strlen("data.") : 0), fields[i].must_be);
        }
}

static int
on_value(void *arg, enum json_type type, const char *text, size_t len)
{
        struct decoder *decoder = arg;
        uint32_t met;

        if (decoder->walk.depth == 0 && type != JSON_OBJECT)
                return error_set(&decoder->error, "the body is not a JSON object");
        met = pointer_walk_value(&decoder->walk);
        if (type == JSON_OBJECT || type == JSON_ARRAY)
                pointer_walk_enter(&decoder->walk, type == JSON_ARRAY);
        if (met == 0)
                return 0;
        if (met >> N_RULES != 0)
                check_fields(decoder, met, type, (struct span){text, len});
        if (met & 1u << WATCH_KIND)
                decoder->kind_type = type;
        for (size_t i = 0; i < N_RULES; i++) {
                struct kept *kept = &decoder->kept[i];

                if (!(met & 1u << i))
                        continue;
                kept->present = 0;
                if ((type == JSON_STRING || (type == JSON_NUMBER && i == WATCH_KEY)) &&
                    keep(decoder, kept, (struct span){text, len}) != 0)
                        return -1;
        }
        return 0;
}

static int
on_name(void *arg, const char *name, size_t len)
{
        struct decoder *decoder = arg;
        uint32_t again = pointer_walk_name(&decoder->walk, (struct span){name, len});

        if (again & 1u << WATCH_KIND)
                return error_set(&decoder->error, "the member that names the kind is duplicated");
        for (size_t i = 0; i < N_RULES; i++) {
                if (again & 1u << i)
                        decoder->kept[i].present =
                            0; /* the last one counts, even if the pointer leads nowhere in it */
        }
        return 0;
}

static int
on_end(void *arg, enum json_type type)
{
        struct decoder *decoder = arg;

        (void)type;
        pointer_walk_leave(&decoder->walk);
        return 0;
}

static void
start(struct decoder *decoder, const struct event_rules *rules, struct decoded *decoded)
{
        const struct pointer *pointers[N_RULES] = {&rules->kind, &rules->key, &rules->subject};

        for (size_t i = 0; i < N_RULES; i++) {
                decoder->watches[i] = (struct pointer_watch){(const char *const *)pointers[i]->segments,
                                                             pointers[i]->n_segments};
                decoder->kept[i].present = 0;
        }
        decoder->walk = (struct pointer_walk){decoder->watches, N_WATCHES, 0, decoder->levels};
        decoder->kind_type = JSON_NULL;
        decoder->decoded = decoded;
        decoder->out_of_memory = 0;
        memset(decoded, 0, sizeof(*decoded));
}

static struct span
kept_span(const struct kept *kept)
{
        return kept->present ? (struct span){kept->data, kept->len} : (struct span){NULL, 0};
}

static void
take_values(const struct decoder *decoder, struct decoded *decoded)
{
        decoded->kind = kept_span(&decoder->kept[WATCH_KIND]);
        decoded->key = kept_span(&decoder->kept[WATCH_KEY]);
        decoded->subject = kept_span(&decoder->kept[WATCH_SUBJECT]);
}

int
decoder_run(struct decoder *decoder, const struct event_rules *rules, struct span body,
            struct decoded *decoded, enum decode_result *result)
{
        static const struct json_events events = {on_value, on_name, on_end};
        int failed;

        start(decoder, rules, decoded);
        failed = json_read(body.data, body.len, DECODE_MAX_DEPTH, &events, decoder, &decoder->error);
        if (decoder->out_of_memory)
                return -1;
        *result = DECODE_OK;
        if (failed) {
                *result = DECODE_MALFORMED_JSON;
                (void)snprintf(decoded->detail, sizeof(decoded->detail), "%.*s", DECODE_DETAIL_SIZE - 1,
                               decoder->error.text);
                return 0;
        }
        take_values(decoder, decoded);
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
