#include "http/framing.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define CHUNK_LINE_MAX 18 /* 16 hexadecimal digits, CR, LF */

int
framing_init(struct framing *framing, size_t max_header_bytes, uint64_t max_body)
{
        memset(framing, 0, sizeof(*framing));
        framing->max_header_bytes = max_header_bytes;
        framing->max_body = max_body;
        return 0;
}

void
framing_clear(struct framing *framing)
{
        free(framing->line);
        framing->line = NULL;
}

int
framing_is_inside(const struct framing *framing)
{
        return framing->state != FRAMING_HEAD || framing->line_len > 0;
}

static enum framing_verdict
refuse(struct framing *framing, int status, const char *reason)
{
        framing->fault = (struct head_fault){status, reason};
        return FRAMING_REFUSED;
}

/* The message is complete: what comes next is a head. Its memory is given back, since most connections then wait. */
static enum framing_verdict
finish(struct framing *framing)
{
        framing->state = FRAMING_HEAD;
        framing->line_len = 0;
        return FRAMING_MESSAGE;
}

/*
 * Take one byte of a line. Lines end in CR LF: a bare LF or CR, which some readers take for an end, is refused, and so is
 * NUL. Returns whether the byte is a line's last.
 */
static int
take_line_byte(struct framing *framing, char c, const char **fault)
{
        char before = framing->line_len > 0 ? framing->line[framing->line_len - 1] : '\0';

        if ((c == '\n') != (before == '\r'))
                *fault = "a bare CR or LF";
        else if (c == '\0')
                *fault = "a NUL byte";
        framing->line[framing->line_len++] = c;
        return c == '\n';
}

static enum framing_verdict
end_head(struct framing *framing)
{
        if (head_parse(framing->line, framing->line_len, &framing->head, &framing->fault) != 0)
                return FRAMING_REFUSED;
        framing->line_len = 0;
        framing->body_len = 0;
        if (framing->head.chunked) {
                framing->state = FRAMING_CHUNK_SIZE;
                return FRAMING_BODY;
        }
        if (framing->head.content_length > framing->max_body)
                return refuse(framing, 413, "the body is too large");
        if (framing->head.content_length == 0)
                return finish(framing);
        framing->left = framing->head.content_length;
        framing->state = FRAMING_LENGTH_BODY;
        return FRAMING_BODY;
}

static int
ends_head(const struct framing *framing)
{
        size_t len = framing->line_len;

        return len == 2 || (len >= 4 && memcmp(framing->line + len - 4, "\r\n\r\n", 4) == 0);
}

/* chunk-size = 1*HEXDIG, RFC 9112 section 7.1. */
static enum framing_verdict
end_chunk_size(struct framing *framing)
{
        size_t len = framing->line_len - 2;
        uint64_t size = 0;

        if (len == 0)
                return refuse(framing, 400, "a chunk's size is missing");
        for (size_t i = 0; i < len; i++) {
                char c = framing->line[i];
                int digit = c >= '0' && c <= '9'   ? c - '0'
                            : c >= 'a' && c <= 'f' ? c - 'a' + 10
                            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                   : -1;

                if (digit < 0)
                        return refuse(framing, 400, "a chunk's size is malformed");
                size = size << 4 | (uint64_t)digit;
        }
        framing->line_len = 0;
        if (size > framing->max_body - framing->body_len)
                return refuse(framing, 413, "the body is too large");
        framing->body_len += size;
        framing->left = size;
        framing->state = size == 0 ? FRAMING_LAST_LINE : FRAMING_CHUNK_DATA;
        return FRAMING_MORE;
}

/* A line, or for the head an empty one, has come to its end. */
static enum framing_verdict
end_line(struct framing *framing)
{
        switch (framing->state) {
        case FRAMING_HEAD:
                return ends_head(framing) ? end_head(framing) : FRAMING_MORE;
        case FRAMING_CHUNK_SIZE:
                return end_chunk_size(framing);
        case FRAMING_CHUNK_END:
                framing->line_len = 0;
                framing->state = FRAMING_CHUNK_SIZE;
                return FRAMING_MORE;
        case FRAMING_LAST_LINE:
                return finish(framing);
        case FRAMING_LENGTH_BODY:
        case FRAMING_CHUNK_DATA:
                break;
        }
        return FRAMING_MORE;
}

/* How long the line under way may become, and what it is when it is longer. */
static size_t
line_limit(const struct framing *framing, const char **fault)
{
        switch (framing->state) {
        case FRAMING_CHUNK_SIZE:
                *fault = "a chunk's size is malformed";
                return CHUNK_LINE_MAX;
        case FRAMING_CHUNK_END:
                *fault = "no line end after a chunk";
                return 2;
        case FRAMING_LAST_LINE:
                *fault = "trailer fields are not accepted";
                return 2;
        case FRAMING_HEAD:
        case FRAMING_LENGTH_BODY:
        case FRAMING_CHUNK_DATA:
                break;
        }
        *fault = "the request line and headers are too long";
        return framing->max_header_bytes;
}

static enum framing_verdict
feed_line(struct framing *framing, const char *data, size_t len, size_t *used)
{
        const char *too_long, *fault = NULL;
        size_t limit = line_limit(framing, &too_long);

        *used = 0;
        if (framing->line == NULL)
                framing->line = malloc(framing->max_header_bytes);
        if (framing->line == NULL)
                return refuse(framing, 503, "out of memory; send it again");
        for (*used = 0; *used < len;) {
                int ended;

                if (framing->line_len == limit)
                        return refuse(framing, 400, too_long);
                ended = take_line_byte(framing, data[(*used)++], &fault);
                if (fault != NULL)
                        return refuse(framing, 400, fault);
                if (framing->line_len == 2 && limit == 2 && !ended)
                        return refuse(framing, 400, too_long);
                if (ended) {
                        enum framing_state state = framing->state;
                        enum framing_verdict verdict = end_line(framing);

                        if (verdict != FRAMING_MORE || framing->state != state)
                                return verdict;
                }
        }
        return FRAMING_MORE;
}

static enum framing_verdict
feed_body(struct framing *framing, size_t len, size_t *used)
{
        *used = framing->left < len ? (size_t)framing->left : len;
        framing->left -= *used;
        if (framing->left > 0)
                return FRAMING_MORE;
        if (framing->state == FRAMING_LENGTH_BODY)
                return finish(framing);
        framing->state = FRAMING_CHUNK_END;
        return FRAMING_MORE;
}

enum framing_verdict
framing_feed(struct framing *framing, const char *data, size_t len, size_t *used)
{
        enum framing_verdict verdict = FRAMING_MORE;
        size_t n = 0;

        for (*used = 0; *used < len && verdict == FRAMING_MORE; *used += n) {
                if (framing->state == FRAMING_LENGTH_BODY || framing->state == FRAMING_CHUNK_DATA)
                        verdict = feed_body(framing, len - *used, &n);
                else
                        verdict = feed_line(framing, data + *used, len - *used, &n);
        }
        return verdict;
}
