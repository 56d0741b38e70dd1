#ifndef SANDBOX_API_H
#define SANDBOX_API_H

#include "base/compiler.h"
#include "base/json_tree.h"
#include "http/request.h"
#include "sandbox/keys.h"
#include "sandbox/violations.h"

/* Reads calls of the HTTP API and answers them, for all handlers. */

#define API_ID_MAX 64

struct json_writer;
struct sandbox;

/* The headers that the API uses; NULL: absent. */
struct api_headers {
        const char *api_key;
        const char *idempotency_key;
        const char *sandbox_error;
};

/* An authenticated API call. Its handler answers it exactly once, by one of the functions below. */
struct api_call {
        struct sandbox *sandbox;
        struct http_request *request;
        const struct api_key *key;
        struct api_headers headers;
        char id[API_ID_MAX + 1]; /* from the path; empty if the route has none */
};

/* Answer with a JSON text, which is released. NULL sends an empty body, for 204. */
void api_reply(const struct api_call *call, int status, struct json_writer *json);

/* Answer with the error envelope; the status determines the code. */
void api_refuse(const struct api_call *call, int status, const char *message);

/* Answer 400 with these violations, and release them. */
void api_refuse_violations(const struct api_call *call, struct violations *violations);

/* Record what is wrong with the payload. */
typedef void api_check(const struct json_value *payload, struct violations *violations);

/* Answer a call whose payload has no violations, for an entity that the key may act for. */
typedef void api_accept(const struct api_call *call, const char *entity, const struct json_value *payload);

/**
 * api_process(call, check, accept):
 * Parse and check the body, and accept it. The entity is the payload's, else the key's, else "default".
 */
void api_process(const struct api_call *call, api_check *check, api_accept *accept);

#endif
