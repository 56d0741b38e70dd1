#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include <stddef.h>

#include "base/compiler.h"

#define ANSWER_ID_SIZE 17 /* of a request id: 16 hexadecimal digits and a NUL */

/* What is wrong with one field of a request. */
struct http_violation {
        const char *field;
        const char *message;
};

/* An error, as the service's envelope reports it. Messages and codes outlive the answer. */
struct http_error {
        int status;
        const char *code;
        const char *message;
        const struct http_violation *violations;
        size_t n_violations;
};

/* What becomes of the connection after an answer. */
enum answer_connection {
        ANSWER_KEEPS,     /* as HTTP/1.1 does unless it says otherwise */
        ANSWER_KEEPS_1_0, /* Connection: keep-alive, for an HTTP/1.0 client that asked for it */
        ANSWER_CLOSES,    /* Connection: close */
};

/* The value of Connection, or NULL. */
const char *answer_connection_value(enum answer_connection connection);

/**
 * answer_error(error, request_id, connection, is_head, len):
 * A complete answer with the service's error envelope and with the headers that the status asks for: Allow for 405, Retry-After
 * for 429 and 503. For HEAD, the envelope is left out, and its length is said (RFC 9110 section 9.3.2). Returns it, *len bytes for pool_free(), or NULL when memory fails.
 */
char *answer_error(const struct http_error *error, const char *request_id, enum answer_connection connection,
                   int is_head, size_t *len) MUST_CHECK;

/**
 * answer_envelope(error, request_id, len):
 * Only its body: {"ok":false,"error":{"code","message","violations","requestId"}}, with violations when there are some.
 */
char *answer_envelope(const struct http_error *error, const char *request_id, size_t *len) MUST_CHECK;

/* Insert Connection: close into a complete answer, from the pool, that keeps the connection. Returns it, or NULL when memory fails. */
char *answer_insert_close(char *text, size_t *len) MUST_CHECK;

/* The header that the status of an error asks for: its name, or NULL; *value is a constant. */
const char *answer_error_header(int status, const char *request_id, const char **value);

/* The error for a request that is refused as HTTP: 400, 408, 413, 414, 417, 501 or 503. */
struct http_error answer_refusal(int status, const char *reason);

/* The reason phrase of a status (RFC 9110 section 15). */
const char *answer_phrase(int status);

/* The value of Date now (RFC 9110 section 5.6.7). It belongs to the thread, until the next call. */
const char *answer_date(void);

#endif
