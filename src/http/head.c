#include "http/head.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/pool.h"
#include "http/proxy_protocol.h"

#define FIRST_FIELDS 16 /* most heads have fewer */

/* tchar, RFC 9110 section 5.6.2. */
static const char is_token_char[256] = {
    ['a' ... 'z'] = 1, ['A' ... 'Z'] = 1, ['0' ... '9'] = 1, ['!'] = 1, ['#'] = 1, ['$'] = 1,
    ['%'] = 1,         ['&'] = 1,         ['\''] = 1,        ['*'] = 1, ['+'] = 1, ['-'] = 1,
    ['.'] = 1,         ['^'] = 1,         ['_'] = 1,         ['`'] = 1, ['|'] = 1, ['~'] = 1,
};

size_t
head_token_len(const char *text, size_t len)
{
        size_t n = 0;

        while (n < len && is_token_char[(unsigned char)text[n]])
                n++;
        return n;
}

static int
is_space(char c)
{
        return c == ' ' || c == '\t';
}

void
head_trim(const char **text, size_t *len)
{
        while (*len > 0 && is_space(**text)) {
                (*text)++;
                (*len)--;
        }
        while (*len > 0 && is_space((*text)[*len - 1]))
                (*len)--;
}

const char *
head_field_parse(const char *line, size_t len, struct head_field *field)
{
        size_t name_len = head_token_len(line, len), value_len;
        const char *value;

        if (name_len == 0 || name_len >= len || line[name_len] != ':')
                return "a header line is malformed";
        value = line + name_len + 1;
        value_len = len - name_len - 1;
        head_trim(&value, &value_len);
        for (size_t i = 0; i < value_len; i++) {
                unsigned char c = (unsigned char)value[i];

                if ((c < 0x20 && c != '\t') || c == 0x7f)
                        return "a header has a control character";
        }
        *field = (struct head_field){line, name_len, value, value_len};
        return NULL;
}

static int
is_text(const char *text, size_t len, const char *wanted)
{
        return strlen(wanted) == len && strncasecmp(text, wanted, len) == 0;
}

static int
field_is(const struct head_field *field, const char *name)
{
        return is_text(field->name, field->name_len, name);
}

static int
value_is(const struct head_field *field, const char *value)
{
        return is_text(field->value, field->value_len, value);
}

int
head_field_may_trail(const struct head_field *field)
{
        static const char *const never[] = {
            "Connection", "Content-Length",    "Expect",  "Host",   "Max-Forwards",
            "TE",         "Transfer-Encoding", "Trailer", "Upgrade"};

        for (size_t i = 0; i < ARRAY_LEN(never); i++) {
                if (field_is(field, never[i]))
                        return 0;
        }
        return 1;
}

/* Returns 1 when all characters are unreserved, sub-delims, pct-encoded (RFC 3986 §2), or in `more`. */
static int
consists_of(const char *text, size_t len, const char *more)
{
        for (size_t i = 0; i < len; i++) {
                char c = text[i];

                if (c == '%' && len - i > 2 && bytes_hex_digit(text[i + 1]) >= 0 &&
                    bytes_hex_digit(text[i + 2]) >= 0)
                        i += 2;
                else if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
                         (c == '\0' || (strchr("-._~!$&'()*+,;=", c) == NULL && strchr(more, c) == NULL)))
                        return 0;
        }
        return 1;
}

/* The text between brackets. IPvFuture is not supported. */
static int
is_ipv6(const char *text, size_t len)
{
        char address[INET6_ADDRSTRLEN];
        struct in6_addr parsed;

        if (len >= sizeof(address))
                return 0;
        memcpy(address, text, len);
        address[len] = '\0';
        return inet_pton(AF_INET6, address, &parsed) == 1;
}

/* ":" *DIGIT, or nothing. */
static int
is_port(const char *text, size_t len)
{
        unsigned port = 0;

        for (size_t i = 1; i < len; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return 0;
                port = port * 10 + (unsigned)(text[i] - '0');
                if (port > 65535)
                        return 0;
        }
        return len == 0 || *text == ':';
}

int
head_is_authority(const char *text, size_t len)
{
        const char *end;

        if (len > 0 && *text == '[') {
                end = memchr(text, ']', len);
                if (end == NULL || !is_ipv6(text + 1, (size_t)(end - text) - 1))
                        return 0;
                end++;
        } else {
                end = memchr(text, ':', len);
                if (end == NULL)
                        end = text + len;
                if (end == text || !consists_of(text, (size_t)(end - text), ""))
                        return 0;
        }
        return is_port(end, len - (size_t)(end - text));
}

/* Return the length of the authority, up to the path or query. */
static size_t
authority_len(const char *text, size_t len)
{
        size_t n = 0;

        while (n < len && text[n] != '/' && text[n] != '?')
                n++;
        return n;
}

/* Return the length of "http://" or "https://" at the beginning, or 0. */
static size_t
scheme_len(const char *target, size_t len)
{
        static const char *const schemes[] = {"http://", "https://"};

        for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
                size_t n = strlen(schemes[i]);

                if (len >= n && strncasecmp(target, schemes[i], n) == 0)
                        return n;
        }
        return 0;
}

const char *
head_check_target(const char *method, const char *target, size_t len)
{
        size_t before = scheme_len(target, len), n;

        if (len == 1 && *target == '*')
                return strcmp(method, "OPTIONS") == 0 ? NULL : "the request target * is for OPTIONS only";
        if (before == 0 && (len == 0 || *target != '/'))
                return "the request target is malformed";
        /* Some parsers take the text after two slashes for an authority. */
        if (before == 0 && len >= 2 && target[1] == '/')
                before = 2;
        n = before == 0 ? 0 : authority_len(target + before, len - before);
        if (!(before == 2 && n == 0) && before > 0 && !head_is_authority(target + before, n))
                return "the request target's host is malformed";
        return consists_of(target + before + n, len - before - n, ":@/?") ? NULL
                                                                          : "the request target is malformed";
}

const char *
head_path(const char *target, size_t len, size_t *path_len)
{
        const char *path = target, *end = target + len, *query;

        if (len > 0 && *target != '/') {
                const char *authority = memmem(target, len, "://", 3);

                if (authority != NULL)
                        path = authority + 3 + authority_len(authority + 3, (size_t)(end - authority) - 3);
        }
        query = memchr(path, '?', (size_t)(end - path));
        *path_len = (size_t)((query == NULL ? end : query) - path);
        return path;
}

static int
fail(struct head_fault *fault, int status, const char *reason)
{
        fault->status = status;
        fault->reason = reason;
        return -1;
}

/* A header of the PROXY protocol came where the request line is expected. */
static int
fail_by_proxy(struct head_fault *fault, const char *reason, const char *reason_behind_proxy)
{
        fault->reason_behind_proxy = reason_behind_proxy;
        return fail(fault, 400, reason);
}

/* CONNECT is missing: its target is not a path. */
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

/* method SP request-target SP HTTP-version, RFC 9112 section 3. */
static int
take_request_line(struct head *head, const char *text, const char *line, size_t len, struct head_fault *fault)
{
        size_t method_len = head_token_len(line, len), target_len = 0, path_len;
        const char *target = line + method_len + 1, *version, *wrong;

        if (proxy_header_is_line(line, len))
                return fail_by_proxy(fault, PROXY_UNEXPECTED, PROXY_SECOND);
        if (method_len == 0 || method_len >= len || line[method_len] != ' ')
                return fail(fault, 400, "the request line is malformed");
        while (target + target_len < line + len && target[target_len] > 0x20 && target[target_len] < 0x7f)
                target_len++;
        version = target + target_len + 1;
        if (target_len == 0 || version + 8 != line + len || version[-1] != ' ')
                return fail(fault, 400, "the request line is malformed");
        if (memcmp(version, "HTTP/1.1", 8) != 0 && memcmp(version, "HTTP/1.0", 8) != 0)
                return fail(fault, 400, "the version is neither HTTP/1.0 nor HTTP/1.1");
        head->minor = version[7] == '1';
        if (method_len > HEAD_METHOD_MAX)
                return fail(fault, 501, "the method is not known");
        memcpy(head->method, line, method_len);
        head->method[method_len] = '\0';
        if (!is_known_method(head->method))
                return fail(fault, 501, "the method is not known");
        wrong = head_check_target(head->method, target, target_len);
        if (wrong != NULL)
                return fail(fault, 400, wrong);
        head->path = (uint16_t)(head_path(target, target_len, &path_len) - text);
        head->path_len = (uint16_t)path_len;
        return 0;
}

/* Content-Length = 1*DIGIT, RFC 9110 section 8.6. */
static int
take_length(struct head *head, const struct head_field *field, struct head_fault *fault)
{
        uint64_t n = 0;

        if (++head->n_lengths > 1)
                return fail(fault, 400, "Content-Length appears more than once");
        if (field->value_len == 0 || field->value_len > 18)
                return fail(fault, 400, "Content-Length is malformed");
        for (size_t i = 0; i < field->value_len; i++) {
                if (field->value[i] < '0' || field->value[i] > '9')
                        return fail(fault, 400, "Content-Length is malformed");
                n = n * 10 + (uint64_t)(field->value[i] - '0');
        }
        head->content_length = n;
        return 0;
}

static int
take_host(struct head *head, const struct head_field *field, struct head_fault *fault)
{
        if (++head->n_hosts > 1)
                return fail(fault, 400, "Host appears more than once");
        return head_is_authority(field->value, field->value_len) ? 0 : fail(fault, 400, "Host is malformed");
}

/* A list of tokens with commas between, RFC 9110 section 7.6.1. */
static void
take_connection(struct head *head, const struct head_field *field)
{
        const char *at = field->value, *end = at + field->value_len;

        while (at < end) {
                const char *comma = memchr(at, ',', (size_t)(end - at));
                const char *option = at;
                size_t len = (size_t)((comma == NULL ? end : comma) - at);

                at += len + 1;
                head_trim(&option, &len);
                head->closes = head->closes || is_text(option, len, "close");
                head->keeps_alive = head->keeps_alive || is_text(option, len, "keep-alive");
        }
}

/* Interpret the fields that concern framing, the connection and the client; their names differ in length. */
static int
take_field(struct head *head, const struct head_field *field, struct head_fault *fault)
{
        switch (field->name_len) {
        case sizeof("Host") - 1:
                return field_is(field, "Host") ? take_host(head, field, fault) : 0;
        case sizeof("Expect") - 1:
                if (!field_is(field, "Expect"))
                        return 0;
                if (value_is(field, "100-continue"))
                        head->expects_continue = 1;
                else
                        head->expects_more = 1; /* RFC 9110 section 10.1.1 */
                return 0;
        case sizeof("Connection") - 1:
                if (field_is(field, "Connection"))
                        take_connection(head, field);
                return 0;
        case sizeof("Content-Length") - 1:
                return field_is(field, "Content-Length") ? take_length(head, field, fault) : 0;
        case sizeof("X-Forwarded-For") - 1:
                if (field_is(field, "X-Forwarded-For"))
                        head->is_forwarded = 1;
                return 0;
        case sizeof("Transfer-Encoding") - 1:
                if (!field_is(field, "Transfer-Encoding"))
                        return 0;
                if (++head->n_encodings > 1 || !value_is(field, "chunked"))
                        return fail(fault, 400, "the only transfer coding accepted is chunked, once");
                head->chunked = 1;
                return 0;
        default:
                return 0;
        }
}

/* Returns 0, or -1 when memory fails. */
static int
keep_field(struct head *head, const struct head_field *field, const char *text)
{
        if (head->n_fields == head->fields_size) {
                size_t size = head->fields_size == 0 ? FIRST_FIELDS : 4 * (size_t)head->fields_size;
                struct head_span *fields = pool_resize(head->fields, size * sizeof(*fields));

                if (fields == NULL)
                        return -1;
                head->fields = fields;
                head->fields_size = size > UINT16_MAX ? UINT16_MAX : (uint16_t)size;
        }
        head->fields[head->n_fields++] =
            (struct head_span){(uint16_t)(field->name - text), (uint16_t)field->name_len,
                               (uint16_t)(field->value - text), (uint16_t)field->value_len};
        return 0;
}

int
head_take(struct head *head, const char *text, size_t line, size_t len, struct head_fault *fault)
{
        struct head_field field;
        const char *wrong;

        if (head->method[0] == '\0')
                return take_request_line(head, text, text + line, len, fault);
        wrong = head_field_parse(text + line, len, &field);
        if (wrong != NULL)
                return fail(fault, 400, wrong);
        if (keep_field(head, &field, text) != 0)
                return fail(fault, 503, "out of memory; send it again");
        return take_field(head, &field, fault);
}

/* RFC 9112 sections 3.2 and 6.1; RFC 9110 sections 9.3.2, 9.3.8 and 10.1.1. */
int
head_end(const struct head *head, struct head_fault *fault)
{
        if (head->method[0] == '\0') /* version 2 of the PROXY protocol begins with two line ends */
                return fail_by_proxy(fault, "the request line is empty, or it is " PROXY_UNEXPECTED,
                                     "the request line is empty, or it is " PROXY_SECOND);
        if (head->minor == 1 && head->n_hosts == 0)
                return fail(fault, 400, "Host is missing");
        if (head->chunked && head->n_lengths > 0)
                return fail(fault, 400, "both Content-Length and Transfer-Encoding");
        if (head->chunked && head->minor == 0)
                return fail(fault, 400, "Transfer-Encoding in HTTP/1.0");
        /* Some parsers take the body of such a request for the next request. */
        if (head_has_body(head) && (strcmp(head->method, "HEAD") == 0 || strcmp(head->method, "TRACE") == 0))
                return fail(fault, 400, "a body with HEAD or TRACE");
        if (head->expects_more && head->minor == 1)
                return fail(fault, 417, "the only expectation that is met is 100-continue");
        return 0;
}

int
head_has_body(const struct head *head)
{
        return head->chunked || head->content_length > 0;
}

void
head_clear(struct head *head)
{
        pool_free(head->fields);
        memset(head, 0, sizeof(*head));
}
