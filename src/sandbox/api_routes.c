#include "sandbox/api_routes.h"

#include <string.h>
#include <strings.h>

#include "sandbox/api_calls.h"
#include "sandbox/sandbox.h"

const struct http_limits api_routes_limits = {
    .max_header_bytes = 16384,
    .max_headers = 100,
    .max_body = 1 << 20,
    .max_connections = 512,
    .header_timeout_ms = 10000,
    .request_timeout_ms = 30000,
    .idle_timeout_ms = 60000,
    .handling_timeout_ms = 60000,
};

static const struct route {
        const char *method;
        const char *path; /* a trailing slash is followed by an id */
        int writes;
        void (*handle)(const struct api_call *call);
} routes[] = {
    {"GET", "/v1/webhooks", 0, api_calls_list_webhooks},
    {"POST", "/v1/webhooks", 1, api_calls_register_webhook},
    {"DELETE", "/v1/webhooks/", 1, api_calls_remove_webhook},
    {"POST", "/v1/invoices", 1, api_calls_submit_invoice},
    {"GET", "/v1/invoices/", 0, api_calls_poll_invoice},
    {"POST", "/v1/sandbox/fire", 1, api_calls_fire_event},
};

static void
on_header(const struct http_header *header, void *arg)
{
        struct api_headers *headers = arg;

        if (strcasecmp(header->name, "x-api-key") == 0)
                headers->api_key = header->value;
        else if (strcasecmp(header->name, "x-idempotency-key") == 0)
                headers->idempotency_key = header->value;
        else if (strcasecmp(header->name, "x-sandbox-error") == 0)
                headers->sandbox_error = header->value;
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

/* Find the route of the call's method and path, or NULL. */
static const struct route *
find_route(struct api_call *call)
{
        const char *method = http_request_method(call->request);
        size_t len;
        const char *path = http_request_path(call->request, &len);

        for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
                if (strcmp(routes[i].method, method) == 0 && matches(&routes[i], path, len, call->id))
                        return &routes[i];
        }
        return NULL;
}

/* Authenticate the caller, find the route, check the key's permission, and run the handler. */
static void
on_request(struct http_request *request, void *arg)
{
        struct sandbox *sandbox = arg;
        struct api_call call = {.sandbox = sandbox, .request = request};
        const struct route *route;

        http_request_headers(request, on_header, &call.headers);
        call.key = call.headers.api_key == NULL ? NULL : keys_find(&sandbox->keys, call.headers.api_key);
        route = find_route(&call);
        if (call.key == NULL)
                api_refuse(&call, 401,
                           call.headers.api_key == NULL ? "the header x-api-key is missing"
                                                        : "the API key is not valid");
        else if (route == NULL)
                api_refuse(&call, 404, "there is no such call; the API is under /v1");
        else if (call.headers.sandbox_error != NULL && strcmp(call.headers.sandbox_error, "500") == 0)
                api_refuse(&call, 500, "an unexpected error, provoked by x-sandbox-error");
        else if (route->writes && call.key->read_only)
                api_refuse(&call, 403, "the key is read-only");
        else
                route->handle(&call);
}

const struct http_callbacks api_routes_callbacks = {.on_request = on_request};
