#include "cli/respace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_DEPTH 64
#define MAX_GROWTH 8

/* What is written so far. */
struct output {
        char *text;
        size_t len;
        size_t size;
        const struct respace_style *style;
        size_t depth;
};

static void
put(struct output *out, const char *text, size_t len)
{
        if (out->len + len > out->size) {
                out->size = 2 * (out->len + len);
                out->text = mem_resize(out->text, out->size, 1);
        }
        memcpy(out->text + out->len, text, len);
        out->len += len;
}

static void
put_newline(struct output *out)
{
        if (out->style->indent == NULL)
                return;
        put(out, "\n", 1);
        for (size_t i = 0; i < out->depth; i++)
                put(out, out->style->indent, strlen(out->style->indent));
}

static size_t
skip_space(const char *text, size_t len, size_t i)
{
        while (i < len && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n'))
                i++;
        return i;
}

/* Where the string that begins at i ends, its quote included. */
static size_t
skip_string(const char *text, size_t len, size_t i)
{
        for (i++; i < len && text[i] != '"'; i++) {
                if (text[i] == '\\' && i + 1 < len)
                        i++;
        }
        return i < len ? i + 1 : len;
}

/* Write the token at i. Returns where it ends. */
static size_t
put_token(struct output *out, const char *text, size_t len, size_t i)
{
        size_t end = text[i] == '"' ? skip_string(text, len, i) : i + 1, next = skip_space(text, len, end);
        int closes = text[i] == '}' || text[i] == ']';

        if (closes && out->depth > 0) {
                out->depth--;
                put_newline(out);
        }
        put(out, text + i, end - i);
        if (text[i] == ',') {
                put(out, out->style->comma, strlen(out->style->comma));
                put_newline(out);
        } else if (text[i] == ':') {
                put(out, out->style->colon, strlen(out->style->colon));
        } else if (text[i] == '{' || text[i] == '[') {
                if (next < len && (text[next] == '}' || text[next] == ']')) { /* empty */
                        put(out, text + next, 1);
                        return next + 1;
                }
                out->depth++;
                put_newline(out);
        }
        return end;
}

char *
respace(const char *text, size_t len, const struct respace_style *style, size_t *respaced_len)
{
        struct output out = {.style = style, .size = len + 1, .text = mem_alloc(len + 1)};

        for (size_t i = skip_space(text, len, 0); i < len; i = skip_space(text, len, i)) {
                i = put_token(&out, text, len, i);
                if (out.depth > MAX_DEPTH || out.len > MAX_GROWTH * len + 1024) {
                        free(out.text);
                        return NULL;
                }
        }
        *respaced_len = out.len;
        return out.text;
}
