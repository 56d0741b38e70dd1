#ifndef SANDBOX_CALL_H
#define SANDBOX_CALL_H

#include "base/compiler.h"
#include "base/json_tree.h"
#include "http/request.h"
#include "sandbox/keys.h"
#include "sandbox/violations.h"

#define CALL_ID_MAX 64

/* A call of the API under way: what came, and whose it is. Answered exactly once, by one of the functions below. */
struct call {
        struct sandbox *sandbox;
        struct http_request *request;
        const struct api_key *key;
        const char *content_type;    /* NULL: none */
        const char *idempotency_key; /* likewise */
        char id[CALL_ID_MAX + 1];    /* of the path, where it has one */
};

/* The entity that a call is for: the one that it names, else the key's, else "default". */
const char *call_entity(const struct call *call, const char *named);

/* Answer with a JSON text, which is released; NULL: with nothing, for 204. */
void call_reply(const struct call *call, int status, yajl_gen json);

/* Answer with the error envelope; the code follows from the status. header may be NULL. message is a printf format. */
void call_refuse(const struct call *call, int status, const struct http_header *header, const char *message,
                 ...) PRINTF_LIKE(4, 5);

/* Answer 400 with these violations, and release them. */
void call_refuse_payload(const struct call *call, struct violations *violations);

/**
 * call_body(call):
 * The call's body, which must be JSON and say so. The caller releases it. Returns NULL after answering 400.
 */
struct json_value *call_body(const struct call *call) MUST_CHECK;

#endif
