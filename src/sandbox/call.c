#include "sandbox/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

/* The documentation names the codes of 400 and 500; the others are the sandbox's. */
static const struct {
        int status;
        const char *code;
} codes[] = {
    {400, "VALIDATION_ERROR"},   {401, "UNAUTHORIZED"}, {403, "FORBIDDEN"},
    {404, "NOT_FOUND"},          {409, "CONFLICT"},     {422, "UNPROCESSABLE_ENTITY"},
    {405, "METHOD_NOT_ALLOWED"}, {503, "UNAVAILABLE"},
};

static const char *
code_for(int status)
{
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                if (codes[i].status == status)
                        return codes[i].code;
        }
        return "INTERNAL_ERROR";
}

const char *
call_entity(const struct call *call, const char *named)
{
        if (named != NULL)
                return named;
        return call->key->entity != NULL ? call->key->entity : "default";
}

static void
reply(const struct call *call, int status, const struct http_header *header, char *body, size_t len)
{
        http_reply(call->request, status, header, header != NULL, body == NULL ? "" : body,
                   body == NULL ? 0 : len);
        free(body);
}

void
call_reply(const struct call *call, int status, yajl_gen json)
{
        size_t len = 0;
        char *body = json == NULL ? NULL : json_take(json, &len);

        reply(call, status, NULL, body, len);
}

void
call_refuse(const struct call *call, int status, const struct http_header *header, const char *message, ...)
{
        struct http_error error;
        char text[512];
        va_list args;
        size_t len = 0;
        char *body;

        va_start(args, message);
        (void)vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        error = (struct http_error){.status = status, .code = code_for(status), .message = text};
        body = answer_envelope(&error, http_request_id(call->request), &len);
        reply(call, status, header, body, len);
}

void
call_refuse_payload(const struct call *call, struct violations *violations)
{
        const struct http_error error = {.status = 400,
                                         .code = code_for(400),
                                         .message = "the payload is not valid; see the violations",
                                         .violations = violations->items,
                                         .n_violations = violations->n};
        size_t len = 0;
        char *body = answer_envelope(&error, http_request_id(call->request), &len);

        reply(call, 400, NULL, body, len);
        violations_clear(violations);
}

/* application/json, with parameters or without. */
static int
is_json(const char *content_type)
{
        static const char json[] = "application/json";
        size_t len = sizeof(json) - 1;

        return content_type != NULL && strncasecmp(content_type, json, len) == 0 &&
               strchr("; \t", content_type[len]) != NULL;
}

struct json_value *
call_body(const struct call *call)
{
        struct violations violations = {0};
        struct json_value *root = NULL;
        struct error error;
        size_t len = 0;
        const char *body = http_request_body(call->request, &len);

        if (body == NULL) {
                call_refuse(call, 500, NULL, "out of memory");
                return NULL;
        }
        if (!is_json(call->content_type))
                violations_add(&violations, "content-type", "must be application/json");
        root = json_tree_parse(body, len, &error);
        if (root == NULL)
                violations_add(&violations, "body", "is no JSON object: %s", error.text);
        if (violations.n == 0)
                return root;
        json_tree_free(root);
        call_refuse_payload(call, &violations);
        return NULL;
}
