#ifndef HTTP_REQUEST_STATE_H
#define HTTP_REQUEST_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/compiler.h"
#include "http/answer.h"
#include "http/framing.h"
#include "http/memory_budget.h"
#include "http/request.h"

/* The inside of a request. Private to http/. */

struct connection;

struct http_request {
        struct connection *connection; /* NULL: it has ended */
        struct connections *all;
        struct evhttp_request *evreq; /* NULL until the request was handed to evhttp */
        struct head head;
        char *text; /* the head's bytes, from the pool */
        char *body; /* from the pool, or NULL */
        size_t body_len;
        size_t body_size;            /* bytes allocated for the body */
        uint64_t reserved;           /* bytes of the memory budget */
        struct memory_waiter waiter; /* in GATE_WAITING */
        /* In GATE_BODY, monotonic: when the body got its memory, and when its speed was last measured. */
        int64_t reserved_ms;
        int64_t mark_ms;
        uint64_t mark_len;   /* body_len at mark_ms */
        int64_t expected_ms; /* time to completion, estimated at mark_ms */
        char *answer;        /* the gate's own answer, sent when the body has been discarded */
        size_t answer_len;
        struct address client;
        enum answer_connection answer_connection; /* of `answer` */
        int is_too_large;                         /* Content-Length exceeds max_body */
        int is_optional;                          /* do not wait for memory: discard the body instead */
        int is_discarded;                         /* the body is read and dropped */
        char id[ANSWER_ID_SIZE];
        max_align_t data[HTTP_REQUEST_DATA_SIZE / sizeof(max_align_t)];
};

/* Make a request from the head that the framing has completed. Returns NULL when memory fails. */
struct http_request *request_new(struct connection *connection) MUST_CHECK;
void request_free(struct http_request *request);

/* Allocate `size` bytes for the body, which must be reserved in the budget. Returns 0 or -1. */
int request_resize_body(struct http_request *request, size_t size) MUST_CHECK;

/* Release memory that the complete body does not need. */
void request_trim_memory(struct http_request *request);

/* Free the body and its reservation; the rest of the body is read and dropped. */
void request_discard_body(struct http_request *request);

/* Return whether the connection stays open after the answer. */
enum answer_connection request_connection(const struct http_request *request);

/* Add Connection: close to the gate's own answer. */
void request_close_after(struct http_request *request);

#endif
