#include "http/head.h"

#include <string.h>

#include "http/field.h"
#include "http/target.h"

static int
fail(struct head_fault *fault, int status, const char *reason)
{
        fault->status = status;
        fault->reason = reason;
        return -1;
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

/* method SP request-target SP HTTP-version, RFC 9112 section 3. */
static int
take_request_line(struct head *head, const char *line, size_t len, struct head_fault *fault)
{
        size_t method_len = field_token_len(line, len), target_len = 0;
        const char *target = line + method_len + 1, *version, *wrong;

        if (method_len == 0 || method_len >= len || line[method_len] != ' ')
                return fail(fault, 400, "the request line is malformed");
        while (target + target_len < line + len && target[target_len] > 0x20 && target[target_len] < 0x7f)
                target_len++;
        version = target + target_len + 1;
        if (target_len == 0 || version + 8 != line + len || version[-1] != ' ')
                return fail(fault, 400, "the request line is malformed");
        if (memcmp(version, "HTTP/1.1", 8) != 0 && memcmp(version, "HTTP/1.0", 8) != 0)
                return fail(fault, 400, "the version is neither HTTP/1.0 nor HTTP/1.1");
        head->minor = version[7] - '0';
        if (method_len > HEAD_METHOD_MAX)
                return fail(fault, 501, "the method is not known");
        memcpy(head->method, line, method_len);
        head->method[method_len] = '\0';
        if (!is_known_method(head->method))
                return fail(fault, 501, "the method is not known");
        wrong = target_check(head->method, target, target_len);
        if (wrong != NULL)
                return fail(fault, 400, wrong);
        head->path = target_path(target, target_len, &head->path_len);
        return 0;
}

/* Content-Length = 1*DIGIT, RFC 9110 section 8.6. */
static int
take_length(struct head *head, const char *value, size_t len, struct head_fault *fault)
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
take_field(struct head *head, const struct field *field, struct head_fault *fault)
{
        head->n_fields++;
        if (field_is(field, "Host")) {
                if (++head->n_hosts > 1)
                        return fail(fault, 400, "Host appears more than once");
                if (!target_is_authority(field->value, field->value_len))
                        return fail(fault, 400, "Host is malformed");
        } else if (field_is(field, "Content-Length")) {
                if (++head->n_lengths > 1)
                        return fail(fault, 400, "Content-Length appears more than once");
                return take_length(head, field->value, field->value_len, fault);
        } else if (field_is(field, "Transfer-Encoding")) {
                if (++head->n_encodings > 1 || !field_value_is(field, "chunked"))
                        return fail(fault, 400, "the only transfer coding accepted is chunked, once");
                head->chunked = 1;
        } else if (field_is(field, "Expect") && !field_value_is(field, "100-continue")) {
                head->expects_more = 1; /* RFC 9110 section 10.1.1; evhttp would answer with a page of HTML */
        }
        return 0;
}

int
head_take(struct head *head, const char *line, size_t len, struct head_fault *fault)
{
        struct field field;
        const char *wrong;

        if (head->method[0] == '\0')
                return take_request_line(head, line, len, fault);
        wrong = field_parse(line, len, &field);
        if (wrong != NULL)
                return fail(fault, 400, wrong);
        return take_field(head, &field, fault);
}

/* What the lines only say together: RFC 9112 sections 3.2 and 6.1, RFC 9110 sections 9.3.2, 9.3.8 and 10.1.1. */
int
head_end(const struct head *head, struct head_fault *fault)
{
        if (head->method[0] == '\0')
                return fail(fault, 400, "the request line is empty");
        if (head->minor == 1 && head->n_hosts == 0)
                return fail(fault, 400, "Host is missing");
        if (head->chunked && head->n_lengths > 0)
                return fail(fault, 400, "both Content-Length and Transfer-Encoding");
        if (head->chunked && head->minor == 0)
                return fail(fault, 400, "Transfer-Encoding in HTTP/1.0");
        /* evhttp takes the body of these for the next request. */
        if ((head->chunked || head->content_length > 0) &&
            (strcmp(head->method, "HEAD") == 0 || strcmp(head->method, "TRACE") == 0))
                return fail(fault, 400, "a body with HEAD or TRACE");
        if (head->expects_more && head->minor == 1)
                return fail(fault, 417, "the only expectation that is met is 100-continue");
        return 0;
}
