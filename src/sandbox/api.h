#ifndef SANDBOX_API_H
#define SANDBOX_API_H

#include "base/compiler.h"
#include "base/json_tree.h"
#include "http/request.h"
#include "http/server.h"
#include "sandbox/keys.h"
#include "sandbox/violations.h"

/*
 * The HTTP API: api.c authenticates each call, finds its route, and runs the route's handler. The handlers
 * are in webhooks.c, invoices.c and events.c.
 */

#define API_ID_MAX 64

struct sandbox;

/* An authenticated API call. Its handler answers it exactly once, by one of the functions below. */
struct api_call {
        struct sandbox *sandbox;
        struct http_request *request;
        const struct api_key *key;
        const char *content_type;    /* NULL: absent */
        const char *idempotency_key; /* NULL: absent */
        char id[API_ID_MAX + 1];     /* from the path; empty if the route has none */
};

/* Callbacks and limits of the HTTP server; the callback argument is the struct sandbox. */
extern const struct http_callbacks api_callbacks;
extern const struct http_limits api_limits;

/* Return the entity that a call acts for: `named` from the payload, else the key's entity, else "default". */
const char *api_entity(const struct api_call *call, const char *named);

/* Answer with a JSON text, which is released. NULL sends an empty body, for 204. */
void api_reply(const struct api_call *call, int status, struct json_writer *json);

/*
 * Answer with the error envelope; the status determines the code. header may be NULL. message is a printf
 * format.
 */
void api_refuse(const struct api_call *call, int status, const struct http_header *header,
                const char *message, ...) PRINTF_LIKE(4, 5);

/* Answer 400 with these violations, and release them. */
void api_refuse_violations(const struct api_call *call, struct violations *violations);

/**
 * api_read_body(call):
 * Parse the body, which must be declared as JSON. The caller releases the tree. Returns NULL after answering
 * 400 or 500.
 */
struct json_value *api_read_body(const struct api_call *call) MUST_CHECK;

#endif
