#include "cli/capture.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_tree.h"
#include "base/mem.h"

/* RFC 9110 section 5.6.2 */
#define TOKEN_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

/* Cut the white space at both ends. Return the first character left. */
static char *
trim(char *text)
{
        size_t len;

        text += strspn(text, " \t");
        len = strlen(text);
        while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL)
                text[--len] = '\0';
        return text;
}

static void
add(struct capture *capture, const char *name, const char *value, unsigned request)
{
        char *copy = mem_strdup(value);
        const struct captured_header header = {mem_strdup(name), mem_strdup(trim(copy)), request};

        free(copy);
        capture->items = mem_resize(capture->items, capture->n + 1, sizeof(*capture->items));
        capture->items[capture->n++] = header;
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

/* METHOD TARGET HTTP/VERSION */
static int
is_request_line(const char *line)
{
        size_t method = strcspn(line, " :");

        return line[method] == ' ' && strstr(line + method + 1, " HTTP/") != NULL;
}

/* Add the header of a line. Returns -1 when the line is not a header. */
static int
add_line(struct capture *capture, char *line, unsigned request)
{
        size_t name_len = strspn(line, TOKEN_CHARS);

        if (name_len == 0 || line[name_len] != ':')
                return -1;
        line[name_len] = '\0';
        add(capture, line, line + name_len + 1, request);
        return 0;
}

static int
parse_curl(char *text, struct capture *capture)
{
        unsigned request = 0;
        char *line;

        while ((line = strsep(&text, "\n")) != NULL) {
                if (strncmp(line, "> ", 2) != 0)
                        continue;
                if (is_request_line(line + 2))
                        request++;
                else
                        (void)add_line(capture, line + 2, request);
        }
        return 0;
}

static int
parse_lines(char *text, struct capture *capture, struct error *error)
{
        char *line;

        for (size_t number = 1; (line = strsep(&text, "\n")) != NULL; number++) {
                int is_indented = *line == ' ' || *line == '\t';

                line = trim(line);
                if (*line == '\0' && capture->n > 0)
                        return 0;
                if (*line == '\0' || (capture->n == 0 && is_request_line(line)))
                        continue;
                if (add_line(capture, line, 1) == 0)
                        continue;
                if (is_indented && capture->n > 0)
                        return error_set(
                            error, "line %zu continues a header; a receiver answers 400 BAD_REQUEST to that",
                            number);
                return error_set(error,
                                 "line %zu is not a header (`Name: value`), and the file is neither JSON nor "
                                 "output of curl -v",
                                 number);
        }
        return 0;
}

/* The text of a string, or of a number, since a timestamp may be one; else NULL. */
static const char *
text_of(const struct json_value *value)
{
        return value != NULL && (value->type == JSON_STRING || value->type == JSON_NUMBER) ? value->text
                                                                                           : NULL;
}

/* Add the header of an object with name (or key) and value. Returns whether it is one. */
static int
add_pair(struct capture *capture, const struct json_value *object, unsigned request)
{
        const char *name = text_of(json_tree_get(object, "name")),
                   *value = text_of(json_tree_get(object, "value"));

        if (name == NULL)
                name = text_of(json_tree_get(object, "key"));
        if (name == NULL || value == NULL)
                return 0;
        add(capture, name, value, request);
        return 1;
}

/* Add the headers in an object or array, as one request, and in its containers, as others. */
static void
add_json(struct capture *capture, const struct json_value *container, unsigned *n_requests)
{
        unsigned request = ++*n_requests;

        for (const struct json_value *value = container->first; value != NULL; value = value->next) {
                const struct json_value *each = value->type == JSON_ARRAY ? value->first : NULL;

                if (value->name != NULL && text_of(value) != NULL)
                        add(capture, value->name, text_of(value), request);
                for (; value->name != NULL && each != NULL; each = each->next) {
                        if (text_of(each) != NULL)
                                add(capture, value->name, text_of(each), request);
                }
                if ((value->type == JSON_OBJECT && !add_pair(capture, value, request)) ||
                    value->type == JSON_ARRAY)
                        add_json(capture, value, n_requests);
        }
}

static int
parse_json(const char *text, struct capture *capture, struct error *error)
{
        struct json_value *root = json_tree_parse(text, strlen(text), error);
        unsigned n_requests = 0;

        if (root == NULL)
                return -1;
        add_json(capture, root, &n_requests);
        json_tree_free(root);
        return 0;
}

int
capture_parse(const char *text, size_t len, struct capture *capture, struct error *error)
{
        char *copy, *start;
        int result;

        *capture = (struct capture){NULL, 0};
        if (memchr(text, '\0', len) != NULL)
                return error_set(error, "contains a NUL byte");
        copy = mem_strndup(text, len);
        start = copy + (strncmp(copy, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
        start += strspn(start, " \t\r\n");
        if (*start == '{' || *start == '[')
                result = parse_json(start, capture, error);
        else if (strncmp(start, "> ", 2) == 0 || strstr(start, "\n> ") != NULL)
                result = parse_curl(start, capture);
        else
                result = parse_lines(start, capture, error);
        free(copy);
        return result;
}

size_t
capture_select(const struct capture *capture, const char *prefix, struct delivery_headers *headers)
{
        unsigned first = 0, last = 0;
        size_t n = 0;

        *headers = (struct delivery_headers){0};
        for (size_t i = 0; i < capture->n; i++) {
                const struct captured_header *header = &capture->items[i];
                struct delivery_headers alone = {0};
                unsigned count = 0;

                delivery_headers_add(&alone, prefix, header->name, header->value);
                for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                        count += alone.counts[h];
                if (count == 0)
                        continue;
                if (n == 0)
                        first = header->request;
                n += n == 0 || (header->request != last && header->request != first);
                last = header->request;
                if (header->request == first)
                        delivery_headers_add(headers, prefix, header->name, header->value);
        }
        return n;
}

char *
capture_find_prefix(const struct capture *capture)
{
        static const char suffix[] = "-signature";

        for (size_t i = 0; i < capture->n; i++) {
                const char *name = capture->items[i].name;
                size_t len = strlen(name);

                if (len >= sizeof(suffix) && strspn(name, TOKEN_CHARS) == len &&
                    strcasecmp(name + len - strlen(suffix), suffix) == 0)
                        return mem_strndup(name, len - strlen(suffix));
        }
        return NULL;
}
