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
 * envelope_error(status, message, violations, n, request_id, len):
 * The service's error envelope, {"ok":false,"error":{"code","message","violations","requestId"}}; violations are in it
 * only for status 400. The code follows the status (400 is VALIDATION_ERROR with violations, else BAD_REQUEST).
 * Returns a string of *len bytes that the caller frees, or NULL when memory fails.
 */
char *envelope_error(int status, const char *message, const struct http_violation *violations, size_t n,
                     const char *request_id, size_t *len);

/**
 * envelope_reply(request, status, message, violations, n):
 * Answer with the error envelope and what the status asks for besides: Allow: POST for 405, Retry-After for 503.
 */
void envelope_reply(struct http_request *request, int status, const char *message,
                    const struct http_violation *violations, size_t n);

#endif
