#include "http/framing.h"

#include <string.h>

#include "base/bytes.h"
#include "base/pool.h"

#define FIRST_SIZE 768     /* bytes first allocated for a head; most heads fit */
#define TLS_HANDSHAKE 0x16 /* the first byte of a ClientHello (RFC 8446 section 5.1) */
#define CHUNK_DIGITS_MAX 16
#define TOO_MUCH_BESIDES "chunk extensions and trailer fields are too long"

/* Return the number of leading hexadecimal digits, at most CHUNK_DIGITS_MAX + 1. */
static size_t
count_digits(const char *line, size_t len)
{
        size_t n = 0;

        while (n < len && n <= CHUNK_DIGITS_MAX && bytes_hex_digit(line[n]) >= 0)
                n++;
        return n;
}

/* The unread rest of a line. */
struct rest {
        const char *next;
        const char *end;
};

/* BWS, RFC 9110 section 5.6.3. */
static void
skip_space(struct rest *rest)
{
        while (rest->next < rest->end && (*rest->next == ' ' || *rest->next == '\t'))
                rest->next++;
}

static int
take(struct rest *rest, char wanted)
{
        if (rest->next == rest->end || *rest->next != wanted)
                return 0;
        rest->next++;
        return 1;
}

static int
take_token(struct rest *rest)
{
        size_t len = head_token_len(rest->next, (size_t)(rest->end - rest->next));

        rest->next += len;
        return len > 0;
}

/* qdtext, or the character after a backslash; the caller handles `"` and `\`. */
static int
is_quotable(char c)
{
        unsigned char byte = (unsigned char)c;

        return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

/* quoted-string (RFC 9110 §5.6.4), after the first quote. */
static int
take_quoted(struct rest *rest)
{
        while (rest->next < rest->end && *rest->next != '"') {
                if (take(rest, '\\') && rest->next == rest->end)
                        return 0;
                if (!is_quotable(*rest->next++))
                        return 0;
        }
        return take(rest, '"');
}

/* chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] ). */
static int
is_extension(struct rest *rest)
{
        while (rest->next < rest->end) {
                const char *before;

                skip_space(rest);
                if (!take(rest, ';'))
                        return 0;
                skip_space(rest);
                if (!take_token(rest))
                        return 0;
                before = rest->next;
                skip_space(rest);
                if (!take(rest, '=')) {
                        rest->next = before;
                        continue;
                }
                skip_space(rest);
                if (take(rest, '"') ? !take_quoted(rest) : !take_token(rest))
                        return 0;
        }
        return 1;
}

/* chunk-size [ chunk-ext ], RFC 9112 sections 7.1 and 7.1.1. Returns NULL, or the reason to refuse it. */
static const char *
parse_chunk_line(const char *line, size_t len, uint64_t *size)
{
        size_t n = count_digits(line, len);
        struct rest rest = {line + n, line + len};

        if (n == 0)
                return len == 0 ? "a chunk's size is missing" : "a chunk's size is malformed";
        if (n > CHUNK_DIGITS_MAX)
                return "a chunk's size is malformed";
        *size = 0;
        for (size_t i = 0; i < n; i++)
                *size = *size << 4 | (uint64_t)bytes_hex_digit(line[i]);
        return is_extension(&rest) ? NULL : "a chunk's extension is malformed";
}

void
framing_init(struct framing *framing, const struct framing_limits *limits)
{
        memset(framing, 0, sizeof(*framing));
        framing->limits = limits;
}

void
framing_clear(struct framing *framing)
{
        pool_free(framing->text);
        framing->text = NULL;
        framing->size = 0;
        framing->len = 0;
        head_clear(&framing->head);
}

int
framing_is_inside(const struct framing *framing)
{
        return framing->state != FRAMING_IN_HEAD || framing->len > 0;
}

void
framing_skip(struct framing *framing, uint64_t n)
{
        framing->left -= n;
}

char *
framing_take_head(struct framing *framing, struct head *head)
{
        char *text = framing->text;

        *head = framing->head;
        for (size_t i = 0; i < head->n_fields; i++) {
                const struct head_span *field = &head->fields[i];

                text[field->name + field->name_len] = '\0';
                text[field->value + field->value_len] = '\0';
        }
        memset(&framing->head, 0, sizeof(framing->head));
        framing->text = NULL;
        framing->size = 0;
        framing->len = 0;
        return text;
}

static enum framing_verdict
refuse(struct framing *framing, int status, const char *reason)
{
        framing->fault = (struct head_fault){.status = status, .reason = reason};
        return FRAMING_REFUSED;
}

static enum framing_verdict
end_head(struct framing *framing)
{
        const struct head *head = &framing->head;

        if (head_end(head, &framing->fault) != 0)
                return FRAMING_REFUSED;
        framing->body_len = 0;
        framing->n_besides = 0;
        framing->left = head->content_length;
        if (head->chunked)
                framing->state = FRAMING_IN_CHUNK_LINE;
        else
                framing->state = head->content_length > 0 ? FRAMING_IN_BODY : FRAMING_AT_END;
        if (head->content_length > framing->limits->max_body)
                return refuse(framing, 413, "the body is too large");
        return FRAMING_HEAD;
}

static enum framing_verdict
end_head_line(struct framing *framing)
{
        size_t line = framing->line, len = framing->len - line - 2;

        if (len == 0) {
                framing->line = 0;
                return end_head(framing);
        }
        if (head_take(&framing->head, framing->text, line, len, &framing->fault) != 0)
                return FRAMING_REFUSED;
        if (framing->head.n_fields > framing->limits->max_headers)
                return refuse(framing, 400, "there are too many headers");
        framing->line = framing->len;
        return FRAMING_MORE;
}

static enum framing_verdict
end_chunk_line(struct framing *framing)
{
        uint64_t size;
        const char *wrong = parse_chunk_line(framing->text, framing->len - 2, &size);

        if (wrong != NULL)
                return refuse(framing, 400, wrong);
        framing->len = 0;
        if (size > framing->limits->max_body || framing->body_len + size > framing->limits->max_body)
                return refuse(framing, 413, "the body is too large");
        framing->body_len += size;
        framing->left = size;
        framing->state = size == 0 ? FRAMING_IN_TRAILER : FRAMING_IN_CHUNK;
        return FRAMING_MORE;
}

/* RFC 9112 section 7.1.2. Trailer fields are discarded. */
static enum framing_verdict
end_trailer_line(struct framing *framing)
{
        size_t len = framing->len - 2;
        struct head_field field;
        const char *wrong;

        framing->len = 0;
        if (len == 0) {
                framing->state = FRAMING_AT_END;
                return FRAMING_MORE;
        }
        wrong = head_field_parse(framing->text, len, &field);
        if (wrong != NULL)
                return refuse(framing, 400, wrong);
        if (!head_field_may_trail(&field))
                return refuse(framing, 400, "a field that must not be in a trailer section");
        return FRAMING_MORE;
}

static enum framing_verdict
end_line(struct framing *framing)
{
        switch (framing->state) {
        case FRAMING_IN_HEAD:
                return end_head_line(framing);
        case FRAMING_IN_CHUNK_LINE:
                return end_chunk_line(framing);
        case FRAMING_IN_TRAILER:
                return end_trailer_line(framing);
        case FRAMING_AFTER_CHUNK:
                framing->len = 0;
                framing->state = FRAMING_IN_CHUNK_LINE;
                return FRAMING_MORE;
        case FRAMING_IN_BODY:
        case FRAMING_IN_CHUNK:
        case FRAMING_AT_END:
                break;
        }
        return FRAMING_MORE;
}

/* Limit chunk extensions and trailers, which max_body does not. */
static void
count_besides(struct framing *framing, char c)
{
        if (framing->state == FRAMING_IN_TRAILER)
                framing->n_besides++;
        else if (framing->state == FRAMING_IN_CHUNK_LINE && c != '\r' && c != '\n')
                framing->n_besides += count_digits(framing->text, framing->len) < framing->len;
}

/*
 * Take one byte of a line. Lines end in CR LF. A bare LF or CR, which some parsers take for a line end, is
 * refused, as is NUL. Returns NULL, or the reason to refuse it.
 */
static const char *
take_byte(struct framing *framing, char c)
{
        char before = framing->len > 0 ? framing->text[framing->len - 1] : '\0';

        framing->text[framing->len++] = c;
        count_besides(framing, c);
        if (framing->state == FRAMING_IN_HEAD && framing->len == 1 && c == TLS_HANDSHAKE)
                return "the client speaks TLS, but this port does not";
        if (framing->state == FRAMING_AFTER_CHUNK && c != (framing->len == 1 ? '\r' : '\n'))
                return "no line end after a chunk";
        if ((c == '\n') != (before == '\r'))
                return "a bare CR or LF";
        if (c == '\0')
                return "a NUL byte";
        return framing->n_besides > framing->limits->max_header_bytes ? TOO_MUCH_BESIDES : NULL;
}

static enum framing_verdict
refuse_long_line(struct framing *framing)
{
        if (framing->state != FRAMING_IN_HEAD)
                return refuse(framing, 400, TOO_MUCH_BESIDES);
        if (memchr(framing->text, '\n', framing->len) == NULL)
                return refuse(framing, 414, "the request line is too long");
        return refuse(framing, 400, "the request line and headers are too long");
}

/* Returns 0, or -1 when memory fails. */
static int
grow(struct framing *framing)
{
        size_t max = framing->limits->max_header_bytes;
        size_t size = framing->size == 0 ? FIRST_SIZE : 4 * framing->size;
        char *text = pool_resize(framing->text, size < max ? size : max);

        if (text == NULL)
                return -1;
        framing->text = text;
        framing->size = size < max ? size : max;
        return 0;
}

static size_t
len_before(const char *data, size_t len, char c)
{
        const char *found = memchr(data, c, len);

        return found == NULL ? len : (size_t)(found - data);
}

/* Copy the bytes within a line of a head at once; only its first byte and its end need checks. */
static size_t
take_plain(struct framing *framing, const char *data, size_t len)
{
        size_t room = framing->size - framing->len;

        if (framing->state != FRAMING_IN_HEAD || framing->len == 0 || framing->text[framing->len - 1] == '\r')
                return 0;
        len = len_before(data, len < room ? len : room, '\r');
        len = len_before(data, len, '\n');
        len = len_before(data, len, '\0');
        if (len > 0)
                memcpy(framing->text + framing->len, data, len);
        framing->len += len;
        return len;
}

/* Read to the end of a line. */
static enum framing_verdict
feed_line(struct framing *framing, const char *data, size_t len, size_t *used)
{
        for (*used = 0; *used < len;) {
                const char *wrong;
                char c;

                *used += take_plain(framing, data + *used, len - *used);
                if (*used == len)
                        break;
                if (framing->len >= framing->limits->max_header_bytes)
                        return refuse_long_line(framing);
                if (framing->len == framing->size && grow(framing) != 0)
                        return refuse(framing, 503, "out of memory; send it again");
                c = data[(*used)++];
                wrong = take_byte(framing, c);
                if (wrong != NULL)
                        return refuse(framing, 400, wrong);
                if (c == '\n')
                        return end_line(framing);
        }
        return FRAMING_MORE;
}

/* Return the verdict that needs no more bytes. */
static enum framing_verdict
look(struct framing *framing)
{
        if (framing->left > 0 && (framing->state == FRAMING_IN_BODY || framing->state == FRAMING_IN_CHUNK))
                return FRAMING_DATA;
        if (framing->state == FRAMING_IN_CHUNK)
                framing->state = FRAMING_AFTER_CHUNK;
        if (framing->state != FRAMING_IN_BODY && framing->state != FRAMING_AT_END)
                return FRAMING_MORE;
        framing->state = FRAMING_IN_HEAD;
        framing->len = 0;
        return FRAMING_END;
}

enum framing_verdict
framing_feed(struct framing *framing, const char *data, size_t len, size_t *used)
{
        enum framing_verdict verdict = look(framing);

        for (*used = 0; verdict == FRAMING_MORE && *used < len;) {
                size_t n;

                verdict = feed_line(framing, data + *used, len - *used, &n);
                *used += n;
                if (verdict == FRAMING_MORE)
                        verdict = look(framing);
        }
        return verdict;
}
