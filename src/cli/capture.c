#include "cli/capture.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* RFC 9110 section 5.6.2 */
#define TOKEN_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
#define BLANKS " \t\r"

/* Add the header of a line. Returns -1 if the line is not a header. */
static int
add_line(struct capture *capture, char *line)
{
        size_t name_len = strspn(line, TOKEN_CHARS), len;
        char *value = line + name_len + 1;

        if (name_len == 0 || line[name_len] != ':')
                return -1;
        line[name_len] = '\0';
        value += strspn(value, BLANKS);
        len = strlen(value);
        while (len > 0 && strchr(BLANKS, value[len - 1]) != NULL)
                value[--len] = '\0';
        capture->items = mem_resize(capture->items, capture->n + 1, sizeof(*capture->items));
        capture->items[capture->n++] = (struct captured_header){line, value};
        return 0;
}

int
capture_parse(char *text, struct capture *capture, struct error *error)
{
        int is_curl = strncmp(text, "> ", 2) == 0 || strstr(text, "\n> ") != NULL;
        char *line;

        for (size_t number = 1; (line = strsep(&text, "\n")) != NULL; number++) {
                int is_blank;

                if (is_curl && strncmp(line, "> ", 2) != 0)
                        continue;
                line += is_curl ? 2 : 0;
                is_blank = line[strspn(line, BLANKS)] == '\0';
                if (is_blank && capture->n > 0)
                        return 0; /* the body follows, or another request */
                if (add_line(capture, line) != 0 && !is_blank && strstr(line, " HTTP/") == NULL)
                        return error_set(error, "line %zu is not a header, `Name: value`", number);
        }
        return 0;
}

int
capture_select(const struct capture *capture, const char *prefix, struct delivery_headers *headers)
{
        unsigned n = 0;

        *headers = (struct delivery_headers){0};
        for (size_t i = 0; i < capture->n; i++)
                delivery_headers_add(headers, prefix, capture->items[i].name, capture->items[i].value);
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                n += headers->counts[h];
        return n > 0;
}

char *
capture_find_prefix(const struct capture *capture)
{
        for (size_t i = 0; i < capture->n; i++) {
                const char *name = capture->items[i].name;
                size_t len = delivery_header_prefix(DELIVERY_SIGNATURE, name);

                if (len > 0)
                        return mem_strndup(name, len);
        }
        return NULL;
}
