#include "http/framing.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/pool.h"
#include "http/blank.h"
#include "http/chunk.h"
#include "http/field.h"

#define CHUNK_BUFFER 8192
#define FIRST_LINE_SIZE 1000 /* most heads are shorter */
#define TOO_MUCH_BESIDES "chunk extensions and trailer fields are too long"

void
framing_init(struct framing *framing, const struct framing_limits *limits)
{
        memset(framing, 0, sizeof(*framing));
        framing->limits = *limits;
}

void
framing_clear(struct framing *framing)
{
        pool_free(framing->line);
        framing->line = NULL;
        framing->line_size = 0;
        framing->head.path = NULL;
        framing->head.path_len = 0;
}

int
framing_is_inside(const struct framing *framing)
{
        return framing->state != FRAMING_HEAD || framing->line_len > 0;
}

uint64_t
framing_slack(const struct framing *framing)
{
        uint64_t buffers = framing->n_chunks * CHUNK_BUFFER;

        return buffers > framing->body_len ? buffers - framing->body_len : 0;
}

static enum framing_verdict
refuse(struct framing *framing, int status, const char *reason)
{
        framing->fault = (struct head_fault){status, reason};
        return FRAMING_REFUSED;
}

/* The message is complete: what comes next is a head. */
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
take_line_byte(struct framing *framing, char *byte, const char **fault)
{
        char before = framing->line_len > 0 ? framing->line[framing->line_len - 1] : '\0', c = *byte;

        framing->line[framing->line_len++] = c;
        *byte = blank_last_byte(framing);
        if (framing->state == FRAMING_CHUNK_END && c != (framing->line_len == 1 ? '\r' : '\n'))
                *fault = "no line end after a chunk";
        else if ((c == '\n') != (before == '\r'))
                *fault = "a bare CR or LF";
        else if (c == '\0')
                *fault = "a NUL byte";
        else if (framing->n_besides > framing->limits.max_header_bytes)
                *fault = TOO_MUCH_BESIDES;
        return c == '\n';
}

static enum framing_verdict
end_head(struct framing *framing)
{
        if (head_end(&framing->head, &framing->fault) != 0)
                return FRAMING_REFUSED;
        framing->line_len = 0;
        framing->body_len = 0;
        framing->n_chunks = 0;
        framing->n_besides = 0;
        if (framing->head.chunked) {
                framing->state = FRAMING_CHUNK_SIZE;
                return FRAMING_BODY;
        }
        if (framing->head.content_length > framing->limits.max_body)
                return refuse(framing, 413, "the body is too large");
        if (framing->head.content_length == 0)
                return finish(framing);
        framing->left = framing->head.content_length;
        framing->state = FRAMING_LENGTH_BODY;
        return FRAMING_BODY;
}

/* Each line is judged as it comes, since so evhttp reads them. All are kept, for the head's spans. */
static enum framing_verdict
end_head_line(struct framing *framing)
{
        const char *line = framing->line + framing->line_start;
        size_t len = framing->line_len - framing->line_start - 2;

        if (framing->line_start == 0)
                memset(&framing->head, 0, sizeof(framing->head));
        framing->line_start = 0;
        if (len == 0)
                return end_head(framing);
        if (head_take(&framing->head, line, len, &framing->fault) != 0)
                return FRAMING_REFUSED;
        if (framing->head.n_fields > framing->limits.max_headers)
                return refuse(framing, 400, "there are too many headers");
        framing->line_start = framing->line_len;
        return FRAMING_MORE;
}

static enum framing_verdict
end_chunk_line(struct framing *framing)
{
        uint64_t size;
        const char *wrong = chunk_parse(framing->line, framing->line_len - 2, &size);

        if (wrong != NULL)
                return refuse(framing, 400, wrong);
        framing->line_len = 0;
        if (size > framing->limits.max_body - framing->body_len)
                return refuse(framing, 413, "the body is too large");
        framing->body_len += size;
        framing->n_chunks += size > 0;
        framing->left = size;
        framing->state = size == 0 ? FRAMING_TRAILER : FRAMING_CHUNK_DATA;
        return FRAMING_MORE;
}

/* RFC 9112 section 7.1.2; nobody is told of the fields. */
static enum framing_verdict
end_trailer_line(struct framing *framing)
{
        struct field field;
        const char *wrong;

        if (framing->line_len == 2)
                return finish(framing);
        wrong = field_parse(framing->line, framing->line_len - 2, &field);
        if (wrong != NULL)
                return refuse(framing, 400, wrong);
        if (!field_may_trail(&field))
                return refuse(framing, 400, "a field that must not be in a trailer section");
        framing->line_len = 0;
        return FRAMING_MORE;
}

/* A line has come to its end. */
static enum framing_verdict
end_line(struct framing *framing)
{
        switch (framing->state) {
        case FRAMING_HEAD:
                return end_head_line(framing);
        case FRAMING_CHUNK_SIZE:
                return end_chunk_line(framing);
        case FRAMING_CHUNK_END:
                framing->line_len = 0;
                framing->state = FRAMING_CHUNK_SIZE;
                return FRAMING_MORE;
        case FRAMING_TRAILER:
                return end_trailer_line(framing);
        case FRAMING_LENGTH_BODY:
        case FRAMING_CHUNK_DATA:
                break;
        }
        return FRAMING_MORE;
}

/* The line under way has become too long. */
static enum framing_verdict
refuse_line(struct framing *framing)
{
        if (framing->state != FRAMING_HEAD)
                return refuse(framing, 400, TOO_MUCH_BESIDES);
        if (memchr(framing->line, '\n', framing->line_len) == NULL)
                return refuse(framing, 414, "the request line is too long");
        return refuse(framing, 400, "the request line and headers are too long");
}

/* More memory for the line under way. Returns 0, or -1 when there is none. */
static int
grow(struct framing *framing)
{
        size_t max = framing->limits.max_header_bytes;
        size_t size = framing->line_size == 0 ? FIRST_LINE_SIZE : 4 * framing->line_size;
        size_t path_at = framing->head.path == NULL ? 0 : (size_t)(framing->head.path - framing->line);
        char *line = pool_resize(framing->line, size < max ? size : max);

        if (line == NULL)
                return -1;
        framing->line = line;
        framing->line_size = size < max ? size : max;
        if (framing->head.path != NULL)
                framing->head.path = line + path_at;
        return 0;
}

/* Shorten a run of bytes to what stands before the first of one value. */
static size_t
before(const char *data, size_t len, char c)
{
        const char *found = memchr(data, c, len);

        return found == NULL ? len : (size_t)(found - data);
}

/*
 * How many of the next bytes say nothing that take_line_byte() would have to judge one by one: within a name or a value of
 * a head, as far as no line and no name ends. Most bytes are such.
 */
static size_t
plain_len(const struct framing *framing, const char *data, size_t len)
{
        char last = framing->line_len > 0 ? framing->line[framing->line_len - 1] : '\n';
        size_t room = framing->line_size - framing->line_len;

        if (framing->state != FRAMING_HEAD || framing->place == FRAMING_BEFORE_VALUE || last == '\r' ||
            last == '\n')
                return 0;
        len = before(data, len < room ? len : room, '\r');
        len = before(data, len, '\n');
        len = before(data, len, '\0');
        return framing->place == FRAMING_IN_NAME ? before(data, len, ':') : len;
}

/* Take these bytes, which stay as they are. */
static void
take_plain(struct framing *framing, const char *data, size_t len)
{
        if (len > 0)
                memcpy(framing->line + framing->line_len, data, len);
        framing->line_len += len;
}

static enum framing_verdict
feed_line(struct framing *framing, char *data, size_t len, size_t *used)
{
        const char *fault = NULL;

        for (*used = 0; *used < len;) {
                enum framing_state state = framing->state;
                enum framing_verdict verdict = FRAMING_MORE;
                size_t n_plain = plain_len(framing, data + *used, len - *used);
                int ended;

                take_plain(framing, data + *used, n_plain);
                *used += n_plain;
                if (*used == len)
                        break;
                if (framing->line_len == framing->limits.max_header_bytes)
                        return refuse_line(framing);
                if (framing->line_len == framing->line_size && grow(framing) != 0)
                        return refuse(framing, 503, "out of memory; send it again");
                ended = take_line_byte(framing, &data[(*used)++], &fault);
                if (fault != NULL)
                        return refuse(framing, 400, fault);
                if (ended)
                        verdict = end_line(framing);
                if (verdict != FRAMING_MORE || framing->state != state)
                        return verdict;
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
framing_feed(struct framing *framing, char *data, size_t len, size_t *used)
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
