#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include <stddef.h>

#include "base/compiler.h"

#define ANSWER_ID_SIZE 17 /* size of a request id: 16 hexadecimal digits and a NUL */

/* A fault of one header, for the error envelope. */
struct http_violation {
        const char *field;
        const char *message;
};

/* An error as the error envelope reports it. The texts outlive the answer. */
struct http_error {
        int status;
        const char *code;
        const char *message;
        const struct http_violation *violations;
        size_t n_violations;
};

/* Whether the connection stays open after an answer. */
enum answer_connection {
        ANSWER_KEEPS,     /* the default of HTTP/1.1: no Connection header */
        ANSWER_KEEPS_1_0, /* Connection: keep-alive, for an HTTP/1.0 client that asked for it */
        ANSWER_CLOSES,    /* Connection: close */
};

/* Return the value of the Connection header, or NULL. */
const char *answer_connection_value(enum answer_connection connection);

/**
 * answer_error(error, request_id, connection, is_head, len):
 * Make a complete answer with the error envelope and the headers that the status needs: Allow for 405,
 * Retry-After for 429 and 503. For HEAD, only Content-Length of the envelope is sent (RFC 9110 §9.3.2).
 * Returns *len bytes for pool_free(), or NULL when memory fails.
 */
char *answer_error(const struct http_error *error, const char *request_id, enum answer_connection connection,
                   int is_head, size_t *len) MUST_CHECK;

/**
 * answer_envelope(error, request_id, len):
 * Make the body only: {"ok":false,"error":{"code","message","violations","requestId"}}; violations only if
 * there are any. Returns *len bytes for pool_free(), or NULL when memory fails.
 */
char *answer_envelope(const struct http_error *error, const char *request_id, size_t *len) MUST_CHECK;

/*
 * Insert Connection: close into an answer made by answer_error(). Returns the answer, or NULL when memory
 * fails.
 */
char *answer_insert_close(char *text, size_t *len) MUST_CHECK;

/* Return the name of the header that an error status needs, or NULL. *value is a constant. */
const char *answer_error_header(int status, const char *request_id, const char **value);

/* Return the error for a request that the gate refuses: status 400, 408, 413, 414, 417, 501 or 503. */
struct http_error answer_refusal(int status, const char *reason);

/* Return whether gatepostd answers this status with this code. */
int answer_has_code(int status, const char *code);

/* Return the reason phrase of a status (RFC 9110 §15). */
const char *answer_phrase(int status);

/* Return the current value of Date (RFC 9110 §5.6.7), valid in this thread until its next call. */
const char *answer_date(void);

#endif
