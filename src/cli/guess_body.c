#include "cli/guess_body.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "cli/json_escapes.h"
#include "cli/respace.h"

#define BOM "\xef\xbb\xbf"

/* Each undo returns a copy that is changed, or NULL, or a copy that is not. */
typedef char *undo(const char *body, size_t len, size_t *undone_len);

/* A copy with room for the longest that becomes of it. */
static char *
copy(const char *body, size_t len, size_t room)
{
        char *text = mem_alloc(room + 1);

        memcpy(text, body, len);
        return text;
}

static char *
cut(const char *body, size_t from, size_t to, size_t *undone_len)
{
        *undone_len = to - from;
        return copy(body + from, to - from, to - from);
}

static int
ends_with(const char *body, size_t len, const char *end)
{
        return len >= strlen(end) && memcmp(body + len - strlen(end), end, strlen(end)) == 0;
}

static char *
lose_newline(const char *body, size_t len, size_t *undone_len)
{
        size_t n = ends_with(body, len, "\r\n") ? 2 : ends_with(body, len, "\n") ? 1 : 0;

        return cut(body, 0, len - n, undone_len);
}

static char *
lose_spaces(const char *body, size_t len, size_t *undone_len)
{
        size_t from = 0, to = len;

        while (to > 0 && strchr(" \t\r\n", body[to - 1]) != NULL && body[to - 1] != '\0')
                to--;
        while (from < to && strchr(" \t\r\n", body[from]) != NULL && body[from] != '\0')
                from++;
        return cut(body, from, to, undone_len);
}

static char *
append(const char *body, size_t len, const char *end, size_t *undone_len)
{
        char *text = copy(body, len, len + strlen(end));

        memcpy(text + len, end, strlen(end));
        *undone_len = len + strlen(end);
        return text;
}

static char *
add_lf(const char *body, size_t len, size_t *undone_len)
{
        return append(body, len, "\n", undone_len);
}

static char *
add_crlf(const char *body, size_t len, size_t *undone_len)
{
        return append(body, len, "\r\n", undone_len);
}

static char *
to_lf(const char *body, size_t len, size_t *undone_len)
{
        char *text = mem_alloc(len + 1);
        size_t n = 0;

        for (size_t i = 0; i < len; i++) {
                if (body[i] != '\r' || i + 1 == len || body[i + 1] != '\n')
                        text[n++] = body[i];
        }
        *undone_len = n;
        return text;
}

static char *
to_crlf(const char *body, size_t len, size_t *undone_len)
{
        char *text = mem_alloc(2 * len + 1);
        size_t n = 0;

        for (size_t i = 0; i < len; i++) {
                if (body[i] == '\n' && (i == 0 || body[i - 1] != '\r'))
                        text[n++] = '\r';
                text[n++] = body[i];
        }
        *undone_len = n;
        return text;
}

static char *
lose_bom(const char *body, size_t len, size_t *undone_len)
{
        return cut(body, len >= 3 && memcmp(body, BOM, 3) == 0 ? 3 : 0, len, undone_len);
}

static char *
add_bom(const char *body, size_t len, size_t *undone_len)
{
        char *text = mem_alloc(len + 4);

        memcpy(text, BOM, 3);
        memcpy(text + 3, body, len);
        *undone_len = len + 3;
        return text;
}

static char *
from_latin_1(const char *body, size_t len, size_t *undone_len)
{
        char *text = mem_alloc(2 * len + 1);
        size_t n = 0;

        for (size_t i = 0; i < len; i++) {
                uint8_t c = (uint8_t)body[i];

                if (c >= 0x80)
                        text[n++] = (char)(0xc0 | c >> 6);
                text[n++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
        }
        *undone_len = n;
        return text;
}

static char *
to_latin_1(const char *body, size_t len, size_t *undone_len)
{
        char *text = mem_alloc(len + 1);
        size_t n = 0;

        for (size_t i = 0; i < len; i++) {
                uint8_t c = (uint8_t)body[i];

                if (c < 0x80) {
                        text[n++] = (char)c;
                } else if ((c & 0xfe) == 0xc2 && i + 1 < len && ((uint8_t)body[i + 1] & 0xc0) == 0x80) {
                        text[n++] = (char)((c & 3) << 6 | ((uint8_t)body[++i] & 0x3f));
                } else { /* not in Latin-1 */
                        free(text);
                        return NULL;
                }
        }
        *undone_len = n;
        return text;
}

#define RESPACE(name, ...) \
        static char *name(const char *body, size_t len, size_t *undone_len) \
        { \
                return respace(body, len, &(const struct respace_style){__VA_ARGS__}, undone_len); \
        }

RESPACE(to_compact, NULL, "", "")
RESPACE(to_spaced, NULL, " ", " ")
RESPACE(to_indented_2, "  ", " ", "")
RESPACE(to_indented_4, "    ", " ", "")
RESPACE(to_indented_tab, "\t", " ", "")

/* In this order, so that of two that come to the same the plainer one is told. */
static const struct {
        const char *what;
        undo *undo;
} changes[] = {
    {"a newline was added at the body's end", lose_newline},
    {"the newline at the body's end was lost", add_lf},
    {"the newline at the body's end, CR LF, was lost", add_crlf},
    {"white space was added around the body", lose_spaces},
    {"the body's line ends were changed from LF to CR LF", to_lf},
    {"the body's line ends were changed from CR LF to LF", to_crlf},
    {"a byte order mark was put before the body", lose_bom},
    {"the byte order mark before the body was lost", add_bom},
    {"the body was encoded anew from UTF-8 to Latin-1", from_latin_1},
    {"the body was encoded anew, as if it were Latin-1, to UTF-8", to_latin_1},
    {"the body's JSON was written anew, with other white space: it was compact", to_compact},
    {"the body's JSON was written anew, with other white space: it had a space after each colon and comma",
     to_spaced},
    {"the body's JSON was written anew, with other white space: it was indented by 2 spaces", to_indented_2},
    {"the body's JSON was written anew, with other white space: it was indented by 4 spaces", to_indented_4},
    {"the body's JSON was written anew, with other white space: it was indented by tabs", to_indented_tab},
    {"the body's JSON was written anew: each / was \\/", json_escapes_add_slashes},
    {"the body's JSON was written anew: each \\/ was /", json_escapes_lose_slashes},
    {"the body's JSON was written anew: letters beyond ASCII were \\u escapes", json_escapes_add_unicode},
    {"the body's JSON was written anew: \\u escapes were letters", json_escapes_lose_unicode},
};

size_t
guess_body_count(void)
{
        return ARRAY_LEN(changes);
}

const char *
guess_body_what(size_t index)
{
        return changes[index].what;
}

char *
guess_body_undo(size_t index, const char *body, size_t len, size_t *undone_len)
{
        char *undone = changes[index].undo(body, len, undone_len);

        if (undone == NULL || *undone_len != len || memcmp(undone, body, len) != 0)
                return undone;
        free(undone);
        return NULL;
}
