#ifndef RECEIVER_SCREEN_H
#define RECEIVER_SCREEN_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "http/request.h"
#include "metrics/metrics.h"
#include "model/delivery.h"

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
        struct http_error error; /* its violations are those below */
        struct http_violation violations[DELIVERY_N_HEADERS];
        char fields[DELIVERY_N_HEADERS][SCREEN_FIELD_SIZE]; /* their names */
};

/* What is held against a source: the delivery's headers as counted, its body, and the time at which it came. */
struct screen_subject {
        struct delivery_headers headers;
        int64_t now_ms;
        const void *body; /* for SCREEN_SIGNATURE only */
        size_t len;
};

/* The checks of a delivery, in the order in which the receiver makes them. */
enum screen_check {
        SCREEN_HEADERS,    /* there once and well formed; reads them into the delivery */
        SCREEN_WEBHOOK_ID, /* one of the source's */
        SCREEN_TIMESTAMP,  /* near now */
        SCREEN_SIGNATURE,  /* right, over the raw body */
        SCREEN_N_CHECKS
};

/**
 * screen_check(check, subject, screened, refusal):
 * Make one of the checks, for screened->source. SCREEN_HEADERS comes first; where it fails, those that follow may be made
 * for headers without a fault. Returns 0, or -1 with the refusal.
 */
int screen_check(enum screen_check check, const struct screen_subject *subject, struct screened *screened,
                 struct refusal *refusal) MUST_CHECK;

/* Check the path, then the method. Returns 0 with the source, or -1 with the refusal. */
int screen_line(const struct config *config, const struct http_request *request, struct screened *screened,
                struct refusal *refusal) MUST_CHECK;

/* Make the checks of the headers, after screen_line(), up to that of the signature. Returns 0, or -1 with the refusal. */
int screen_headers(const struct http_request *request, int64_t now_ms, struct screened *screened,
                   struct refusal *refusal) MUST_CHECK;

/* The check of the signature over the raw body. Returns 0, or -1 with the refusal. */
int screen_verify(struct screened *screened, const void *body, size_t len,
                  struct refusal *refusal) MUST_CHECK;

/* Whether a delivery that was refused as stale is signed by the service all the same. */
int screen_is_genuine(struct screened *screened, const void *body, size_t len);

#endif
