#include "sandbox/api_routes.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sandbox/api.h"
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
    {"GET", "/v1/webhooks", 0, api_webhooks_list},       {"POST", "/v1/webhooks", 1, api_webhooks_register},
    {"DELETE", "/v1/webhooks/", 1, api_webhooks_remove}, {"POST", "/v1/invoices", 1, api_invoices_submit},
    {"GET", "/v1/invoices/", 0, api_invoices_poll},      {"POST", "/v1/sandbox/fire", 1, api_events_fire},
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

const struct http_callbacks api_routes_callbacks = {.on_request = on_request};
