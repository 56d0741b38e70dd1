#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "http/answer.h"

/* A request, from the end of its head until its answer, which frees it. http_callbacks lists its steps. */
struct http_request;

#define HTTP_REQUEST_DATA_SIZE 160

struct http_header {
        const char *name;
        const char *value;
};

/* Return the method in upper case. */
const char *http_request_method(const struct http_request *request);

/*
 * Return the path: the target up to `?`, without the scheme and authority of an absolute-form target, not
 * decoded and not NUL-terminated.
 */
const char *http_request_path(const struct http_request *request, size_t *len);

/**
 * http_request_headers(request, visit, arg):
 * Call visit for each header, in order, with the name as sent. The texts live until the answer or
 * http_request_forget().
 */
void http_request_headers(const struct http_request *request,
                          void (*visit)(const struct http_header *header, void *arg), void *arg);

/* Returns 1 when the client waits for 100 Continue before it sends the body. */
int http_request_awaits_continue(const struct http_request *request);

/* Return HTTP_REQUEST_DATA_SIZE bytes, zeroed at first, for the callbacks to keep state from step to step. */
void *http_request_data(struct http_request *request);

/* Returns 1 when Content-Length exceeds max_body. Unless on_head answers, the gate answers 413. */
int http_request_is_too_large(const struct http_request *request);

/* From on_head: discard the body if no memory for it is free, instead of waiting. */
void http_request_make_body_optional(struct http_request *request);

/*
 * Return the body, valid until the answer, http_request_forget() or http_request_take_body(). NULL only when
 * it was discarded.
 */
const void *http_request_body(const struct http_request *request, size_t *len);

/* Hand over the body; the caller frees it with free(). NULL when it is empty. */
void *http_request_take_body(struct http_request *request, size_t *len) MUST_CHECK;

/* Hand over the request's reservation: the bytes that the caller passes to memory_budget_release(). */
uint64_t http_request_take_memory(struct http_request *request);

/* Return the peer, or the client that a trusted proxy named by the PROXY protocol or X-Forwarded-For. */
const struct address *http_request_client(const struct http_request *request);

/*
 * Return the peer if it is not a trusted proxy but has sent X-Forwarded-For, so that it is a proxy unless the
 * sender of the request adds that header; else NULL, also where a proxy names clients by the PROXY protocol.
 * It has no address on a Unix-domain socket. Call this before http_request_forget().
 */
const struct address *http_request_untrusted_proxy(const struct http_request *request);

/* Return the answer's x-request-id: 16 hexadecimal digits. */
const char *http_request_id(const struct http_request *request);

/* Free headers and body before the answer. Method, id and client stay. */
void http_request_forget(struct http_request *request);

/**
 * http_reply(request, status, headers, n_headers, body, len):
 * Answer a request that on_request handed over, and free it. Harmless when the client has gone. Content-Type
 * defaults to application/json; x-request-id, Date and Content-Length are added. body is copied; for HEAD,
 * only its length is sent.
 */
void http_reply(struct http_request *request, int status, const struct http_header *headers, size_t n_headers,
                const char *body, size_t len);

/**
 * http_reply_error(request, error):
 * Answer with the error envelope and free the request, in any callback. Before on_request the gate writes the
 * answer by itself: when the body has been read, or at once with Expect: 100-continue.
 */
void http_reply_error(struct http_request *request, const struct http_error *error);

#endif
