#include "cli/diagnosis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "cli/json_style.h"

/* Bytes to hash: a few seconds' work. A trial costs some besides its body's. */
#define MAX_HASHED (UINT64_C(1) << 30)
#define TRIAL_COST 256
/* Longer bodies are not rewritten, since indentation may make them many times as long. */
#define MAX_REWRITTEN ((size_t)1 << 20)
#define SIGNATURE_DIGITS ((size_t)2 * SIGNATURE_SIZE)

static const struct {
        const char *name, *indent, *after_colon, *after_comma;
} spacings[] = {
    {"without white space", NULL, "", ""},   {"with a space after each colon and comma", NULL, " ", " "},
    {"indented by 2 spaces", "  ", " ", ""}, {"indented by 4 spaces", "    ", " ", ""},
    {"indented by tabs", "\t", " ", ""},
};

static const struct {
        const char *name;
        int slashes, letters;
} escapings[] = {
    {"with neither / nor non-ASCII letters escaped", 0, 0},
    {"with / as \\/", 1, 0},
    {"with \\u escapes for non-ASCII letters", 0, 1},
    {"with / as \\/ and \\u escapes for non-ASCII letters", 1, 1},
};

static const struct {
        const char *cause, *ending;
} endings[] = {
    {NULL, ""},
    {"a newline at the end of the body was removed", "\n"},
    {"a CR LF at the end of the body was removed", "\r\n"},
};

struct search {
        const struct diagnosis_subject *subject;
        uint8_t signature[SIGNATURE_SIZE];
        uint64_t n_hashed;
        struct diagnosis *diagnosis;
};

/* What may have been signed, head before body, and how it differs from the delivery; NULL: not at all. */
struct candidate {
        const char *head, *head_cause;
        const char *body, *ending_cause;
        size_t len;
};

void
diagnosis_add(struct diagnosis *diagnosis, char *cause)
{
        if (cause != NULL)
                diagnosis->causes[diagnosis->n_causes++] = cause;
}

static void
add_copy(struct diagnosis *diagnosis, const char *cause)
{
        diagnosis_add(diagnosis, cause == NULL ? NULL : mem_strdup(cause));
}

void
diagnosis_clear(struct diagnosis *diagnosis)
{
        for (size_t i = 0; i < diagnosis->n_causes; i++)
                free(diagnosis->causes[i]);
        *diagnosis = (struct diagnosis){0};
}

/* Try the secrets of a source. */
static int
try_source(struct search *search, const struct candidate *candidate, const struct config_source *source)
{
        struct diagnosis *diagnosis = search->diagnosis;
        uint64_t cost = candidate->len + TRIAL_COST;

        for (size_t k = 0; k < source->n_keys; k++) {
                if (search->n_hashed + cost > MAX_HASHED) {
                        diagnosis->gave_up = 1;
                        return 0;
                }
                search->n_hashed += cost;
                diagnosis->n_tried++;
                if (signature_matches(source->keys[k], candidate->head, strlen(candidate->head),
                                      candidate->body, candidate->len, search->signature) <= 0)
                        continue;
                diagnosis->is_found = 1;
                add_copy(diagnosis, candidate->ending_cause);
                add_copy(diagnosis, candidate->head_cause);
                if (source != search->subject->source)
                        diagnosis_add(diagnosis, mem_printf("it was signed with the secret of the source %s",
                                                            source->name));
                return 1;
        }
        return 0;
}

/* Try all configured secrets, the source's first. */
static int
try_secrets(struct search *search, const struct candidate *candidate)
{
        const struct config *config = search->subject->config;

        if (try_source(search, candidate, search->subject->source))
                return 1;
        for (size_t s = 0; s < config->n_sources; s++) {
                if (&config->sources[s] != search->subject->source &&
                    try_source(search, candidate, &config->sources[s]))
                        return 1;
        }
        return 0;
}

static int
is_in_ms(const char *timestamp)
{
        return strlen(timestamp) == 13 && strspn(timestamp, "0123456789") == 13;
}

/* Try what may have been signed before the body. */
static int
try_heads(struct search *search, struct candidate *candidate)
{
        const char *timestamp = search->subject->timestamp;
        char *with_stop = mem_printf("%s.", timestamp), *seconds = mem_printf("%.10s.", timestamp);
        const struct {
                const char *cause, *head;
        } heads[] = {
            {NULL, with_stop},
            {"the timestamp was not signed", ""},
            {"the full stop between timestamp and body was not signed", timestamp},
            {"the timestamp was signed in seconds", seconds},
        };
        size_t n = is_in_ms(timestamp) ? 4 : 3;
        int is_hit = 0;

        for (size_t h = 0; h < n && !is_hit; h++) {
                candidate->head = heads[h].head;
                candidate->head_cause = heads[h].cause;
                is_hit = try_secrets(search, candidate);
        }
        free(with_stop);
        free(seconds);
        return is_hit;
}

/* Try each millisecond of a timestamp in seconds. */
static int
try_milliseconds(struct search *search)
{
        const struct diagnosis_subject *subject = search->subject;
        char head[16];
        const struct candidate candidate = {head, "the timestamp was signed in milliseconds", subject->body,
                                            NULL, subject->len};

        if (strlen(subject->timestamp) != 10)
                return 0;
        for (unsigned ms = 0; ms < 1000; ms++) {
                (void)snprintf(head, sizeof(head), "%s%03u.", subject->timestamp, ms);
                if (try_secrets(search, &candidate))
                        return 1;
        }
        return 0;
}

/* Try a body of len bytes, with room for two more, with and without a newline at its end. */
static int
try_body(struct search *search, char *body, size_t len)
{
        struct candidate candidate = {.body = body};

        for (size_t e = 0; e < ARRAY_LEN(endings); e++) {
                memcpy(body + len, endings[e].ending, strlen(endings[e].ending));
                candidate.len = len + strlen(endings[e].ending);
                candidate.ending_cause = endings[e].cause;
                if (try_heads(search, &candidate))
                        return 1;
        }
        if (len == 0 || body[len - 1] != '\n')
                return 0;
        candidate.len = len - (len > 1 && body[len - 2] == '\r' ? 2 : 1);
        candidate.ending_cause = "a newline was added to the end of the body";
        return try_heads(search, &candidate);
}

static int
try_unchanged(struct search *search)
{
        const struct diagnosis_subject *subject = search->subject;
        char *body = mem_alloc(subject->len + 2);
        int is_hit;

        memcpy(body, subject->body, subject->len);
        is_hit = try_body(search, body, subject->len);
        free(body);
        return is_hit;
}

static int
try_style(struct search *search, const struct json_value *root, size_t s, size_t e)
{
        const struct json_style style = {spacings[s].indent, spacings[s].after_colon, spacings[s].after_comma,
                                         escapings[e].slashes, escapings[e].letters};
        size_t len;
        char *body = json_style_write(root, &style, &len);
        int is_hit = body != NULL && try_body(search, body, len);

        if (is_hit)
                diagnosis_add(search->diagnosis, mem_printf("the JSON was rewritten; it was signed %s, %s",
                                                            spacings[s].name, escapings[e].name));
        free(body);
        return is_hit;
}

/* Try the JSON as common serialisers write it. */
static int
try_styles(struct search *search)
{
        const struct diagnosis_subject *subject = search->subject;
        struct json_value *root = NULL;
        struct error error;
        int is_hit = 0;

        if (subject->len > MAX_REWRITTEN)
                search->diagnosis->gave_up = 1;
        else
                root = json_tree_parse(subject->body, subject->len, &error);
        for (size_t i = 0; i < ARRAY_LEN(spacings) * ARRAY_LEN(escapings) && root != NULL && !is_hit; i++)
                is_hit = try_style(search, root, i / ARRAY_LEN(escapings), i % ARRAY_LEN(escapings));
        json_tree_free(root);
        return is_hit;
}

/*
 * Read the 64 hexadecimal digits, of either case, at the end of a signature. Returns 0, or -1 when they are
 * not there.
 */
static int
read_digits(const char *text, uint8_t signature[SIGNATURE_SIZE])
{
        size_t len = strlen(text);

        for (size_t i = 0; i < SIGNATURE_DIGITS; i++) {
                int digit = len < SIGNATURE_DIGITS ? -1 : bytes_hex_digit(text[len - SIGNATURE_DIGITS + i]);

                if (digit < 0)
                        return -1;
                signature[i / 2] = (uint8_t)(signature[i / 2] << 4 | digit);
        }
        return 0;
}

void
diagnosis_find(const struct diagnosis_subject *subject, struct diagnosis *diagnosis)
{
        struct search search = {.subject = subject, .diagnosis = diagnosis};
        uint8_t signature[SIGNATURE_SIZE];

        *diagnosis = (struct diagnosis){0};
        if (read_digits(subject->signature, search.signature) != 0)
                return;
        if (!try_unchanged(&search) && !try_styles(&search) && !try_milliseconds(&search))
                return;
        if (is_in_ms(subject->timestamp))
                add_copy(diagnosis, "the timestamp header is in milliseconds instead of seconds");
        if (signature_parse(subject->signature, strlen(subject->signature), signature) != 0)
                add_copy(diagnosis,
                         "the signature header is not sha256= and 64 lower-case hexadecimal digits");
}
