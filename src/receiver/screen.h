#ifndef RECEIVER_SCREEN_H
#define RECEIVER_SCREEN_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "http/request.h"
#include "metrics/metrics.h"
#include "model/delivery_check.h"

/*
 * Screen requests: find the source by the path, and make the checks of model/delivery_check.h in their order.
 * A check that fails decides the answer.
 */

/* A request that may be a delivery. The texts are the request's. */
struct screened {
        const struct config_source *source; /* NULL: no source has this path */
        struct delivery delivery;
        const char *traceparent; /* NULL: missing or malformed */
        const char *tracestate;  /* likewise, and only with a traceparent */
};

/* Why a request is refused: the answer, and the outcome to count. */
struct screen_refusal {
        enum metrics_outcome outcome;
        const char *near_source; /* the source whose path resembles that of the request, or NULL */
        struct http_error error; /* its violations point to those below */
        struct http_violation violations[DELIVERY_N_HEADERS];
        struct delivery_refusal found; /* holds the violations' texts, and for each refusal the detail */
};

/* Return whether a request has the User-Agent of `gatepost doctor`, as anybody can send it. */
int screen_is_of_doctor(const struct http_request *request);

/* Let the operator know that: write why such a request is refused, after a mark. Return marked. */
const char *screen_mark(char marked[DELIVERY_DETAIL_SIZE], const char *why);

/* Check the path, then the method. Returns 0 with the source, or -1 with the refusal. */
int screen_line(const struct config *config, const struct http_request *request, struct screened *screened,
                struct screen_refusal *refusal) MUST_CHECK;

/* After screen_line(), make all checks before that of the signature. Returns 0, or -1 with the refusal. */
int screen_headers(const struct http_request *request, int64_t now_ms, struct screened *screened,
                   struct screen_refusal *refusal) MUST_CHECK;

/*
 * Refuse a delivery with a stale timestamp, after its signature was checked or not: the outcome is
 * OUTCOME_STALE or one of its kind.
 */
void screen_classify_stale(const struct screened *screened, enum metrics_outcome outcome,
                           struct screen_refusal *refusal);

/* Check the signature over the raw body. Returns 0, or -1 with the refusal. */
int screen_verify(struct screened *screened, const void *body, size_t len,
                  struct screen_refusal *refusal) MUST_CHECK;

/* Whether the service has signed a delivery that was refused as stale. */
int screen_is_genuine(struct screened *screened, const void *body, size_t len);

#endif
