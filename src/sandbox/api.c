#include "sandbox/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

/* The service documents the codes of 400 and 500; the others are the sandbox's own. */
static const struct {
        int status;
        const char *code;
} codes[] = {
    {400, "VALIDATION_ERROR"},   {401, "UNAUTHORIZED"}, {403, "FORBIDDEN"},
    {404, "NOT_FOUND"},          {409, "CONFLICT"},     {422, "UNPROCESSABLE_ENTITY"},
    {405, "METHOD_NOT_ALLOWED"}, {503, "UNAVAILABLE"},
};

static const char *
error_code(int status)
{
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                if (codes[i].status == status)
                        return codes[i].code;
        }
        return "INTERNAL_ERROR";
}

static void
reply(const struct api_call *call, int status, const struct http_header *header, char *body, size_t len)
{
        http_reply(call->request, status, header, header != NULL, body == NULL ? "" : body,
                   body == NULL ? 0 : len);
        free(body);
}

void
api_reply(const struct api_call *call, int status, struct json_writer *json)
{
        size_t len = 0;
        char *body = json == NULL ? NULL : json_take(json, &len);

        reply(call, status, NULL, body, len);
}

void
api_refuse(const struct api_call *call, int status, const struct http_header *header, const char *message,
           ...)
{
        struct http_error error;
        char text[512];
        va_list args;
        size_t len = 0;
        char *body;

        va_start(args, message);
        (void)vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        error = (struct http_error){.status = status, .code = error_code(status), .message = text};
        body = answer_envelope(&error, http_request_id(call->request), &len);
        reply(call, status, header, body, len);
}

void
api_refuse_violations(const struct api_call *call, struct violations *violations)
{
        const struct http_error error = {.status = 400,
                                         .code = error_code(400),
                                         .message = "the request is not valid; see the violations",
                                         .violations = violations->items,
                                         .n_violations = violations->n};
        size_t len = 0;
        char *body = answer_envelope(&error, http_request_id(call->request), &len);

        reply(call, 400, NULL, body, len);
        violations_clear(violations);
}

/* Return whether the media type is application/json; parameters are ignored. */
static int
is_json(const char *content_type)
{
        static const char json[] = "application/json";
        size_t len = sizeof(json) - 1;

        return content_type != NULL && strncasecmp(content_type, json, len) == 0 &&
               strchr("; \t", content_type[len]) != NULL;
}

struct json_value *
api_read_body(const struct api_call *call)
{
        struct violations violations = {0};
        struct json_value *root = NULL;
        struct error error;
        size_t len = 0;
        const char *body = http_request_body(call->request, &len);

        if (body == NULL) {
                api_refuse(call, 500, NULL, "out of memory");
                return NULL;
        }
        if (!is_json(call->content_type))
                violations_add(&violations, "content-type", "must be application/json");
        root = json_tree_parse(body, len, &error);
        if (root == NULL)
                violations_add(&violations, "body", "is not a JSON object: %s", error.text);
        if (violations.n == 0)
                return root;
        json_tree_free(root);
        api_refuse_violations(call, &violations);
        return NULL;
}

/* Return the entity that a call acts for: `named` from the payload, else the key's entity, else "default". */
static const char *
choose_entity(const struct api_call *call, const char *named)
{
        if (named != NULL)
                return named;
        return call->key->entity != NULL ? call->key->entity : "default";
}

void
api_process(const struct api_call *call, api_check *check, api_accept *accept)
{
        struct json_value *payload = api_read_body(call);
        struct violations violations = {0};
        const char *entity;

        if (payload == NULL)
                return;
        check(call, payload, &violations);
        entity = choose_entity(call, json_tree_text(payload, "entity"));
        if (violations.n > 0)
                api_refuse_violations(call, &violations);
        else if (!keys_allow_entity(call->key, entity))
                api_refuse(call, 403, NULL, "the key is for another entity");
        else
                accept(call, entity, payload);
        json_tree_free(payload);
}
