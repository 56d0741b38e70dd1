#include "sandbox/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"

const struct http_limits api_limits = {
    .max_header_bytes = 16384,
    .max_headers = 100,
    .max_body = 1 << 20,
    .max_connections = 512,
    .header_timeout_ms = 10000,
    .request_timeout_ms = 30000,
    .idle_timeout_ms = 60000,
    .handling_timeout_ms = 60000,
};

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

const char *
api_entity(const struct api_call *call, const char *named)
{
        if (named != NULL)
                return named;
        return call->key->entity != NULL ? call->key->entity : "default";
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

static const struct route {
        const char *method;
        const char *path; /* a trailing slash is followed by an id */
        int writes;
        void (*handle)(const struct api_call *call);
} routes[] = {
    {"GET", "/v1/webhooks", 0, webhooks_list},       {"POST", "/v1/webhooks", 1, webhooks_register},
    {"DELETE", "/v1/webhooks/", 1, webhooks_remove}, {"POST", "/v1/invoices", 1, invoices_submit},
    {"GET", "/v1/invoices/", 0, invoices_poll},      {"POST", "/v1/sandbox/fire", 1, events_fire},
};

/* The headers that the API uses. A repeated one makes the request ambiguous. */
struct known_headers {
        const char *api_key;
        const char *idempotency_key;
        const char *content_type;
        const char *sandbox_error;
        const char *repeated; /* name of a repeated header, or NULL */
};

static void
on_header(const struct http_header *header, void *arg)
{
        struct known_headers *known = arg;
        const struct {
                const char *name;
                const char **value;
        } places[] = {
            {"x-api-key", &known->api_key},
            {"x-idempotency-key", &known->idempotency_key},
            {"content-type", &known->content_type},
            {"x-sandbox-error", &known->sandbox_error},
        };

        for (size_t i = 0; i < ARRAY_LEN(places); i++) {
                if (strcasecmp(header->name, places[i].name) != 0)
                        continue;
                if (*places[i].value != NULL)
                        known->repeated = places[i].name;
                *places[i].value = header->value;
        }
}

/* Return whether the route has this path, and copy the id that the path ends in. */
static int
matches(const struct route *route, const char *path, size_t len, char id[API_ID_MAX + 1])
{
        size_t fixed = strlen(route->path);

        id[0] = '\0';
        if (len < fixed || memcmp(path, route->path, fixed) != 0)
                return 0;
        if (route->path[fixed - 1] != '/')
                return len == fixed;
        if (len == fixed || len - fixed > API_ID_MAX || memchr(path + fixed, '/', len - fixed) != NULL)
                return 0;
        memcpy(id, path + fixed, len - fixed);
        id[len - fixed] = '\0';
        return 1;
}

/* Find the route of the call's path and method. Returns NULL after answering 404 or 405. */
static const struct route *
find_route(struct api_call *call)
{
        const char *method = http_request_method(call->request);
        char allowed[64] = "";
        const struct http_header allow = {"Allow", allowed};
        size_t len;
        const char *path = http_request_path(call->request, &len);

        for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
                if (!matches(&routes[i], path, len, call->id))
                        continue;
                if (strcmp(routes[i].method, method) == 0)
                        return &routes[i];
                (void)snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s%s",
                               allowed[0] == '\0' ? "" : ", ", routes[i].method);
        }
        if (allowed[0] == '\0')
                api_refuse(call, 404, NULL, "there is nothing at this path; the API is under /v1");
        else
                api_refuse(call, 405, &allow, "this path accepts %s", allowed);
        return NULL;
}

static void
refuse_repeated(const struct api_call *call, const char *name)
{
        struct violations violations = {0};

        violations_add(&violations, name, "must not be repeated");
        api_refuse_violations(call, &violations);
}

/* Authenticate the caller, find the route, check the key's permission, and run the handler. */
static void
on_request(struct http_request *request, void *arg)
{
        struct sandbox *sandbox = arg;
        struct known_headers headers = {0};
        struct api_call call = {.sandbox = sandbox, .request = request};
        const struct route *route;

        http_request_headers(request, on_header, &headers);
        call.content_type = headers.content_type;
        call.idempotency_key = headers.idempotency_key;
        call.key = headers.api_key == NULL ? NULL : keys_find(&sandbox->keys, headers.api_key);
        if (call.key == NULL) {
                api_refuse(&call, 401, NULL,
                           headers.api_key == NULL ? "the header x-api-key is missing"
                                                   : "the API key is not valid");
                return;
        }
        if (headers.repeated != NULL) {
                refuse_repeated(&call, headers.repeated);
                return;
        }
        route = find_route(&call);
        if (route == NULL)
                return;
        if (headers.sandbox_error != NULL && strcmp(headers.sandbox_error, "500") == 0)
                api_refuse(&call, 500, NULL, "an unexpected error, provoked by x-sandbox-error");
        else if (route->writes && call.key->read_only)
                api_refuse(&call, 403, NULL, "the key is read-only");
        else
                route->handle(&call);
}

const struct http_callbacks api_callbacks = {.on_request = on_request};
