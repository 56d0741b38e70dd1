#ifndef RECEIVER_SCREEN_H
#define RECEIVER_SCREEN_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "http/envelope.h"
#include "http/request.h"
#include "model/delivery.h"
#include "ops/metrics.h"

#define SCREEN_FIELD_SIZE 128

/* A request that may be a delivery. All texts are the request's. */
struct screened {
        const struct config_source *source; /* NULL when the path is no source's */
        struct delivery delivery;
        const char *traceparent; /* NULL when not there or not well formed */
        const char *tracestate;  /* likewise, and only with a traceparent */
};

/* Why a request is refused: all that the answer says. */
struct refusal {
        enum metrics_outcome outcome;
        int status;
        const char *code;
        const char *message;
        struct http_violation violations[DELIVERY_N_HEADERS];
        char fields[DELIVERY_N_HEADERS][SCREEN_FIELD_SIZE]; /* their names */
        size_t n_violations;
};

/**
 * screen_request(config, request, now_ms, screened, refusal):
 * The checks that look at the request line and the headers only, in their order: path, method, the four headers,
 * webhook-id, timestamp. Returns 0, or -1 with the refusal.
 */
int screen_request(const struct config *config, const struct http_request *request, int64_t now_ms,
                   struct screened *screened, struct refusal *refusal) MUST_CHECK;

/**
 * screen_verify(screened, body, len, refusal):
 * The check of the signature over the raw body. Returns 0, or -1 with the refusal.
 */
int screen_verify(const struct screened *screened, const void *body, size_t len,
                  struct refusal *refusal) MUST_CHECK;

/* The status that path and method alone give a request whose body is too large: 404, 405 or 413. */
int screen_oversize(const struct config *config, const char *method, const char *path, size_t path_len);

#endif
