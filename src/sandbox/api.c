#include "sandbox/api.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"

/* The service documents the codes of 400 and 500; the others are the sandbox's own. */
static const struct {
        int status;
        const char *code;
} codes[] = {
    {400, "VALIDATION_ERROR"}, {401, "UNAUTHORIZED"}, {403, "FORBIDDEN"},
    {404, "NOT_FOUND"},        {409, "CONFLICT"},     {422, "UNPROCESSABLE_ENTITY"},
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

void
api_reply(const struct api_call *call, int status, struct json_writer *json)
{
        size_t len = 0;
        char *body = json == NULL ? NULL : json_take(json, &len);

        http_reply(call->request, status, NULL, 0, body == NULL ? "" : body, len);
        free(body);
}

void
api_refuse(const struct api_call *call, int status, const char *message)
{
        const struct http_error error = {.status = status, .code = error_code(status), .message = message};

        http_reply_error(call->request, &error);
}

void
api_refuse_violations(const struct api_call *call, struct violations *violations)
{
        const struct http_error error = {.status = 400,
                                         .code = error_code(400),
                                         .message = "the request is not valid; see the violations",
                                         .violations = violations->items,
                                         .n_violations = violations->n};

        http_reply_error(call->request, &error);
        violations_clear(violations);
}

/* Parse the body. Returns NULL after answering 400. */
static struct json_value *
read_body(const struct api_call *call)
{
        struct violations violations = {0};
        struct json_value *root;
        struct error error;
        size_t len = 0;
        const char *body = http_request_body(call->request, &len);

        if (body == NULL)
                mem_exit();
        root = json_tree_parse(body, len, &error);
        if (root == NULL) {
                violations_add(&violations, "body", "is not JSON: %s", error.text);
                api_refuse_violations(call, &violations);
        }
        return root;
}

/*
 * Return the entity that a call acts for: the payload's, else the key's, else "default". Its name becomes a
 * part of a mail address.
 */
static const char *
choose_entity(const struct api_call *call, const struct json_value *payload, struct violations *violations)
{
        const char *named = json_tree_text(payload, "entity");

        if (named != NULL && !keys_is_entity(named))
                violations_add(violations, "entity", "must have 1 to %d letters, digits and . _ -",
                               KEYS_ENTITY_MAX);
        if (named != NULL)
                return named;
        return call->key->entity != NULL ? call->key->entity : "default";
}

void
api_process(const struct api_call *call, api_check *check, api_accept *accept)
{
        struct json_value *payload = read_body(call);
        struct violations violations = {0};
        const char *entity;

        if (payload == NULL)
                return;
        check(payload, &violations);
        entity = choose_entity(call, payload, &violations);
        if (violations.n > 0)
                api_refuse_violations(call, &violations);
        else if (!keys_allow_entity(call->key, entity))
                api_refuse(call, 403, "the key is for another entity");
        else
                accept(call, entity, payload);
        json_tree_free(payload);
}
