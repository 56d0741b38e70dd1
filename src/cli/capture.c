#include "cli/capture.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static const char token_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "!#$%&'*+-.^_`|~"; /* RFC 9110 section 5.6.2 */

/* A line, without what ends it and what indents it. */
struct line {
        const char *text;
        size_t len;
};

void
capture_add(struct capture *capture, const char *name, size_t name_len, const char *value, size_t value_len,
            unsigned request)
{
        while (value_len > 0 && strchr(" \t", value[0]) != NULL) {
                value++;
                value_len--;
        }
        while (value_len > 0 && strchr(" \t\r", value[value_len - 1]) != NULL)
                value_len--;
        capture->items = mem_resize(capture->items, capture->n + 1, sizeof(*capture->items));
        capture->items[capture->n++] =
            (struct captured_header){mem_strndup(name, name_len), mem_strndup(value, value_len), request};
}

void
capture_clear(struct capture *capture)
{
        for (size_t i = 0; i < capture->n; i++) {
                free(capture->items[i].name);
                free(capture->items[i].value);
        }
        free(capture->items);
        *capture = (struct capture){NULL, 0};
}

/* The next line at *rest. Returns 0 at the end. */
static int
next_line(const char **rest, const char *end, struct line *line)
{
        const char *newline;

        if (*rest >= end)
                return 0;
        newline = memchr(*rest, '\n', (size_t)(end - *rest));
        line->text = *rest;
        line->len = (size_t)((newline == NULL ? end : newline) - *rest);
        *rest = newline == NULL ? end : newline + 1;
        if (line->len > 0 && line->text[line->len - 1] == '\r')
                line->len--;
        return 1;
}

static void
trim(struct line *line)
{
        while (line->len > 0 && (*line->text == ' ' || *line->text == '\t')) {
                line->text++;
                line->len--;
        }
}

/* METHOD TARGET HTTP/VERSION */
static int
is_request_line(const struct line *line)
{
        const char *version = memmem(line->text, line->len, " HTTP/", 6);
        const char *space = memchr(line->text, ' ', line->len);

        return version != NULL && space != NULL && space < version &&
               memchr(line->text, ':', (size_t)(space - line->text)) == NULL;
}

/* Add the header in a line. Returns -1 when there is none in it. */
static int
add_line(struct capture *capture, const struct line *line, unsigned request)
{
        const char *colon = memchr(line->text, ':', line->len);
        size_t name_len = colon == NULL ? 0 : (size_t)(colon - line->text);

        if (name_len == 0 || strspn(line->text, token_chars) != name_len)
                return -1;
        capture_add(capture, line->text, name_len, colon + 1, line->len - name_len - 1, request);
        return 0;
}

/* Of what curl -v has written, the lines that it sent. */
static int
parse_curl(const char *text, const char *end, struct capture *capture)
{
        struct line line;
        unsigned request = 0;

        while (next_line(&text, end, &line)) {
                if (line.len < 2 || memcmp(line.text, "> ", 2) != 0)
                        continue;
                line.text += 2;
                line.len -= 2;
                if (is_request_line(&line))
                        request++;
                else
                        (void)add_line(capture, &line, request);
        }
        return 0;
}

static int
parse_lines(const char *text, const char *end, struct capture *capture, struct error *error)
{
        struct line line;
        size_t number = 0;
        int is_indented;

        while (next_line(&text, end, &line)) {
                number++;
                is_indented = line.len > 0 && strchr(" \t", *line.text) != NULL;
                trim(&line);
                if (line.len == 0 && capture->n > 0)
                        return 0;
                if (line.len == 0 || (capture->n == 0 && is_request_line(&line)))
                        continue;
                if (add_line(capture, &line, 1) == 0)
                        continue;
                if (is_indented && capture->n > 0)
                        return error_set(
                            error,
                            "line %zu goes on with the header before it; so it must not be sent, "
                            "and a receiver answers 400 BAD_REQUEST",
                            number);
                return error_set(error,
                                 "line %zu is no header, `Name: value`; nor is this the output of curl -v, "
                                 "or JSON",
                                 number);
        }
        return 0;
}

static int
is_curl(const char *text, const char *end)
{
        struct line line;

        while (next_line(&text, end, &line)) {
                if (line.len >= 2 && memcmp(line.text, "> ", 2) == 0)
                        return 1;
        }
        return 0;
}

int
capture_parse(const char *text, size_t len, struct capture *capture, struct error *error)
{
        const char *end = text + len;

        *capture = (struct capture){NULL, 0};
        if (memchr(text, '\0', len) != NULL)
                return error_set(error, "there is a NUL byte in it");
        if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                text += 3;
        while (text < end && strchr(" \t\r\n", *text) != NULL)
                text++;
        if (text < end && (*text == '{' || *text == '['))
                return capture_parse_json(text, (size_t)(end - text), capture, error);
        if (is_curl(text, end))
                return parse_curl(text, end, capture);
        return parse_lines(text, end, capture, error);
}

size_t
capture_count(const struct capture *capture, const char *prefix, struct delivery_headers *headers)
{
        unsigned first = 0, last = 0;
        size_t n = 0;

        memset(headers, 0, sizeof(*headers));
        for (size_t i = 0; i < capture->n; i++) {
                const struct captured_header *header = &capture->items[i];
                struct delivery_headers alone = {0};
                int is_one = 0;

                delivery_headers_add(&alone, prefix, header->name, header->value);
                for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                        is_one |= alone.counts[h] > 0;
                if (!is_one)
                        continue;
                if (n == 0)
                        first = header->request;
                if (n == 0 || (header->request != last && header->request != first))
                        n++;
                last = header->request;
                if (header->request == first)
                        delivery_headers_add(headers, prefix, header->name, header->value);
        }
        return n;
}
