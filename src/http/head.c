#include "http/head.h"

#include <string.h>
#include <strings.h>

/* What is collected over the header lines. */
struct fields {
        unsigned n_hosts;
        unsigned n_lengths;
        unsigned n_encodings;
        int minor; /* of the version HTTP/1.x */
};

static int
fail(struct head_fault *fault, int status, const char *reason)
{
        fault->status = status;
        fault->reason = reason;
        return -1;
}

/* tchar, RFC 9110 section 5.6.2. */
static int
is_token_char(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static size_t
token_len(const char *text, size_t len)
{
        size_t n = 0;

        while (n < len && is_token_char(text[n]))
                n++;
        return n;
}

/* The methods that evhttp 2.1 hands over. CONNECT is not among them: its target is no path. */
static int
is_known_method(const char *method)
{
        static const char *const known[] = {"GET",    "POST",    "HEAD",  "PUT",
                                            "DELETE", "OPTIONS", "TRACE", "PATCH"};

        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
                if (strcmp(known[i], method) == 0)
                        return 1;
        }
        return 0;
}

const char *
head_target_path(const char *target, size_t len, size_t *path_len)
{
        const char *path = target, *end = target + len, *query;

        if (len > 0 && *target != '/') {
                const char *authority = memmem(target, len, "://", 3);

                if (authority != NULL) {
                        path = authority + 3;
                        while (path < end && *path != '/' && *path != '?')
                                path++;
                }
        }
        query = memchr(path, '?', (size_t)(end - path));
        *path_len = (size_t)((query == NULL ? end : query) - path);
        return path;
}

/* method SP request-target SP HTTP-version, RFC 9112 section 3. */
static int
parse_request_line(const char *line, size_t len, struct head *head, struct fields *fields,
                   struct head_fault *fault)
{
        size_t method_len = token_len(line, len), target_len = 0;
        const char *target = line + method_len + 1, *version;

        if (method_len == 0 || method_len >= len || line[method_len] != ' ')
                return fail(fault, 400, "the request line is malformed");
        while (target + target_len < line + len && target[target_len] > 0x20 && target[target_len] < 0x7f)
                target_len++;
        version = target + target_len + 1;
        if (target_len == 0 || version + 8 != line + len || version[-1] != ' ')
                return fail(fault, 400, "the request line is malformed");
        if (memcmp(version, "HTTP/1.1", 8) != 0 && memcmp(version, "HTTP/1.0", 8) != 0)
                return fail(fault, 400, "the version is neither HTTP/1.0 nor HTTP/1.1");
        fields->minor = version[7] - '0';
        if (method_len > HEAD_METHOD_MAX)
                return fail(fault, 501, "the method is not known");
        memcpy(head->method, line, method_len);
        head->method[method_len] = '\0';
        if (!is_known_method(head->method))
                return fail(fault, 501, "the method is not known");
        if (*target != '/' && *target != '*' && strncasecmp(target, "http://", 7) != 0 &&
            strncasecmp(target, "https://", 8) != 0)
                return fail(fault, 400, "the request target is malformed");
        head->path = head_target_path(target, target_len, &head->path_len);
        return 0;
}

/* Content-Length = 1*DIGIT, RFC 9110 section 8.6. */
static int
parse_length(const char *value, size_t len, struct head *head, struct head_fault *fault)
{
        uint64_t n = 0;

        if (len == 0 || len > 18)
                return fail(fault, 400, "Content-Length is malformed");
        for (size_t i = 0; i < len; i++) {
                if (value[i] < '0' || value[i] > '9')
                        return fail(fault, 400, "Content-Length is malformed");
                n = n * 10 + (uint64_t)(value[i] - '0');
        }
        head->content_length = n;
        return 0;
}

static int
is_named(const char *name, size_t len, const char *wanted)
{
        return strlen(wanted) == len && strncasecmp(name, wanted, len) == 0;
}

static int
take_field(const char *name, size_t name_len, const char *value, size_t len, struct head *head,
           struct fields *fields, struct head_fault *fault)
{
        if (is_named(name, name_len, "Host") && ++fields->n_hosts > 1)
                return fail(fault, 400, "Host appears more than once");
        if (is_named(name, name_len, "Content-Length")) {
                if (++fields->n_lengths > 1)
                        return fail(fault, 400, "Content-Length appears more than once");
                return parse_length(value, len, head, fault);
        }
        if (is_named(name, name_len, "Transfer-Encoding")) {
                if (++fields->n_encodings > 1 || !is_named(value, len, "chunked"))
                        return fail(fault, 400, "the only transfer coding accepted is chunked, once");
                head->chunked = 1;
        }
        /* RFC 9110 section 10.1.1. evhttp would answer with a page of HTML. */
        if (is_named(name, name_len, "Expect") && fields->minor == 1 && !is_named(value, len, "100-continue"))
                return fail(fault, 417, "the only expectation that can be met is 100-continue");
        return 0;
}

/* field-name ":" OWS field-value OWS, RFC 9112 section 5; no folding, no space before the colon. */
static int
parse_field(const char *line, size_t len, struct head *head, struct fields *fields, struct head_fault *fault)
{
        size_t name_len = token_len(line, len), start = name_len + 1;

        if (name_len == 0 || name_len >= len || line[name_len] != ':')
                return fail(fault, 400, "a header line is malformed");
        while (start < len && (line[start] == ' ' || line[start] == '\t'))
                start++;
        while (len > start && (line[len - 1] == ' ' || line[len - 1] == '\t'))
                len--;
        for (size_t i = start; i < len; i++) {
                unsigned char c = (unsigned char)line[i];

                if ((c < 0x20 && c != '\t') || c == 0x7f)
                        return fail(fault, 400, "a header has a control character");
        }
        return take_field(line, name_len, line + start, len - start, head, fields, fault);
}

/* What the lines only say together: RFC 9112 sections 3.2 and 6.1. */
static int
check_together(const struct head *head, const struct fields *fields, struct head_fault *fault)
{
        if (fields->minor == 1 && fields->n_hosts == 0)
                return fail(fault, 400, "Host is missing");
        if (head->chunked && fields->n_lengths > 0)
                return fail(fault, 400, "both Content-Length and Transfer-Encoding");
        if (head->chunked && fields->minor == 0)
                return fail(fault, 400, "Transfer-Encoding in HTTP/1.0");
        return 0;
}

int
head_parse(const char *text, size_t len, struct head *head, struct head_fault *fault)
{
        struct fields fields = {0};
        const char *line = text, *end = text + len;

        memset(head, 0, sizeof(*head));
        while (line < end) {
                const char *eol = memmem(line, (size_t)(end - line), "\r\n", 2);
                size_t line_len = eol == NULL ? 0 : (size_t)(eol - line);
                int result;

                if (line_len == 0)
                        break;
                if (line == text)
                        result = parse_request_line(line, line_len, head, &fields, fault);
                else
                        result = parse_field(line, line_len, head, &fields, fault);
                if (result != 0)
                        return -1;
                line = eol + 2;
        }
        if (line == text)
                return fail(fault, 400, "the request line is empty");
        return check_together(head, &fields, fault);
}
