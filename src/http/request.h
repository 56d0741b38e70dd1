#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "http/answer.h"

/* A request: made when its head is complete, released by its one answer. See http_callbacks for the steps that it takes. */
struct http_request;

#define HTTP_REQUEST_DATA_SIZE 160

struct http_header {
        const char *name;
        const char *value;
};

/* The method's name, in upper case. */
const char *http_request_method(const struct http_request *request);

/* The path as it came: the target's bytes before `?`; of an absolute-form target, those after the authority. Not NUL-terminated. */
const char *http_request_path(const struct http_request *request, size_t *len);

/**
 * http_request_headers(request, visit, arg):
 * Call visit for each header, in order; names as they came. They live until the answer or http_request_forget().
 */
void http_request_headers(const struct http_request *request,
                          void (*visit)(const struct http_header *header, void *arg), void *arg);

/* The length that the head says the body has; 0 when it has none, or comes in chunks. */
uint64_t http_request_content_length(const struct http_request *request);

/* Whether the client waits with the body for 100 Continue: an answer now spares it the sending. */
int http_request_awaits_continue(const struct http_request *request);

/* HTTP_REQUEST_DATA_SIZE bytes for the callbacks to use from step to step, zero at first. */
void *http_request_data(struct http_request *request);

/* Whether the head says that the body is larger than max_body. Unless it is answered otherwise, it is answered with 413. */
int http_request_is_too_large(const struct http_request *request);

/* From on_head: the body is of use, but if there is no memory for it at once, it is discarded. */
void http_request_make_body_optional(struct http_request *request);

/*
 * The body in one piece, valid until the answer, http_request_forget() or http_request_take_body(). Never NULL, also when it is
 * empty, unless it was discarded.
 */
const void *http_request_body(const struct http_request *request, size_t *len);

/* Hand the body over; the caller frees it with free(). NULL when it is empty. */
void *http_request_take_body(struct http_request *request, size_t *len) MUST_CHECK;

/* Hand over what the request has reserved of the memory budget: bytes for memory_budget_release(). */
uint64_t http_request_take_memory(struct http_request *request);

/* Who sent it: the connection's peer, or whom a trusted proxy names by the PROXY protocol or X-Forwarded-For. */
const struct address *http_request_client(const struct http_request *request);

/* What x-request-id of the answer will say: 16 hexadecimal digits. */
const char *http_request_id(const struct http_request *request);

/**
 * http_request_forget(request):
 * Free headers and body when only the answer is to come. Method, id and client stay.
 */
void http_request_forget(struct http_request *request);

/**
 * http_reply(request, status, headers, n_headers, body, len):
 * Answer and release the request; harmless when the client has gone. Only for requests that have been handed over by
 * on_request. Content-Type is application/json unless the headers say otherwise; x-request-id, Date and Content-Length are
 * added. body is copied; to HEAD, only its length is sent.
 */
void http_reply(struct http_request *request, int status, const struct http_header *headers, size_t n_headers,
                const char *body, size_t len);

/**
 * http_reply_error(request, error):
 * Answer with the error envelope, and release the request, at any of its steps. The gate itself writes the answer to a
 * request that was not handed over by on_request: when its body has come, or at once with Expect: 100-continue.
 */
void http_reply_error(struct http_request *request, const struct http_error *error);

#endif
