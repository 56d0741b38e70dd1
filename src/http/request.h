#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stddef.h>

#include "base/address.h"
#include "http/server.h"

struct http_header {
        const char *name;
        const char *value;
};

/* The method's name, in upper case. */
const char *http_request_method(const struct http_request *request);

/* The path as it came: the target's bytes before `?`, of an absolute-form target those after the authority. Not NUL-terminated. */
const char *http_request_path(const struct http_request *request, size_t *len);

/**
 * http_request_headers(request, visit, arg):
 * Call visit for each header, in order; names as they came. They live until the reply or http_request_forget().
 */
void http_request_headers(const struct http_request *request,
                          void (*visit)(const struct http_header *header, void *arg), void *arg);

/*
 * The body in one piece, valid until the reply or http_request_forget(); never NULL, also when empty. NULL only when memory
 * fails.
 */
const void *http_request_body(struct http_request *request, size_t *len);

/* Who sent it: the connection's peer, or what trusted proxies say by the PROXY protocol or X-Forwarded-For. */
struct address http_request_client(const struct http_request *request);

/**
 * http_request_forget(request):
 * Give back what its body and its headers take, when nothing but its answer is to come: what http_request_body() gave and
 * what visitors of the headers saw ends. Method, path, id and http_request_client() stay; so do the headers from which it
 * follows whether the connection does.
 */
void http_request_forget(struct http_request *request);

/* What x-request-id of the answer will say: 16 hexadecimal digits. */
const char *http_request_id(const struct http_request *request);

/**
 * http_reply(request, status, headers, n_headers, body, len):
 * Answer and release the request; it is harmless when the client has gone. Content-Type is application/json unless the
 * headers say otherwise; x-request-id, Date and Content-Length are added. body is copied; to HEAD only its length is told.
 */
void http_reply(struct http_request *request, int status, const struct http_header *headers, size_t n_headers,
                const char *body, size_t len);

#endif
