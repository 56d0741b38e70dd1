#ifndef HTTP_ENVELOPE_H
#define HTTP_ENVELOPE_H

#include <stddef.h>

#include "http/request.h"

/* What is wrong with one field of a request. */
struct http_violation {
        const char *field;
        const char *message;
};

/**
 * envelope_error(code, message, violations, n, request_id, len):
 * The service's error envelope, {"ok":false,"error":{"code","message","violations","requestId"}}, with violations only
 * when there are some. Returns a string of *len bytes that the caller frees, or NULL when memory fails.
 */
char *envelope_error(const char *code, const char *message, const struct http_violation *violations, size_t n,
                     const char *request_id, size_t *len);

/**
 * envelope_reply(request, status, code, message, violations, n):
 * Answer with the error envelope and what the status asks for besides: Allow: POST for 405, Retry-After for 429 and 503.
 */
void envelope_reply(struct http_request *request, int status, const char *code, const char *message,
                    const struct http_violation *violations, size_t n);

#endif
