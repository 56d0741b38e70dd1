#include "http/chunk.h"

#include "base/hex.h"
#include "http/field.h"

size_t
chunk_n_digits(const char *line, size_t len)
{
        size_t n = 0;

        while (n < len && n <= CHUNK_DIGITS_MAX && hex_digit(line[n]) >= 0)
                n++;
        return n;
}

int
chunk_is_last(const char *line, size_t len)
{
        size_t n = chunk_n_digits(line, len), zeros = 0;

        while (zeros < n && line[zeros] == '0')
                zeros++;
        return n > 0 && zeros == n;
}

/* What is left of a line that is being read. */
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
        size_t len = field_token_len(rest->next, (size_t)(rest->end - rest->next));

        rest->next += len;
        return len > 0;
}

/* qdtext, or what stands after a backslash; without `"` and `\`, which the caller knows. */
static int
is_quotable(char c)
{
        unsigned char byte = (unsigned char)c;

        return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

/* quoted-string, RFC 9110 section 5.6.4; the first quote has been taken. */
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

const char *
chunk_parse(const char *line, size_t len, uint64_t *size)
{
        size_t n = chunk_n_digits(line, len);
        struct rest rest = {line + n, line + len};

        if (n == 0)
                return len == 0 ? "a chunk's size is missing" : "a chunk's size is malformed";
        if (n > CHUNK_DIGITS_MAX)
                return "a chunk's size is malformed";
        *size = 0;
        for (size_t i = 0; i < n; i++)
                *size = *size << 4 | (uint64_t)hex_digit(line[i]);
        return is_extension(&rest) ? NULL : "a chunk's extension is malformed";
}
