#ifndef TESTS_FUZZ_TRANSCRIPT_H
#define TESTS_FUZZ_TRANSCRIPT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "http/framing.h"
#include "http/request.h"

/* A false condition is a finding: it ends the process, and the fuzzer keeps the input. */
#define MUST(condition) ((condition) ? (void)0 : abort())

#define TRANSCRIPT_MAX 256 /* more messages than 4096 bytes can contain */

/* The messages that a reader has found, each as a text of method, path, headers and body. */
struct transcript {
        struct {
                char *text;
                size_t len;
        } messages[TRANSCRIPT_MAX];
        size_t n;
        int status; /* of the error, or 0 */
};

void transcript_clear(struct transcript *transcript);

/* Abort unless the first n messages are equal. */
void transcript_compare(const struct transcript *a, const struct transcript *b, size_t n);

/* Append a request from a handler. */
void transcript_take(struct transcript *transcript, struct http_request *request);

/* Record the messages that framing.c finds in the bytes, fed `step` at a time. */
void transcript_of_framing(const struct framing_limits *limits, const uint8_t *data, size_t len, size_t step,
                           struct transcript *transcript);

/**
 * transcript_of_server(limits, data, len, step, transcript):
 * Record the requests that a handler gets when the bytes are sent to a server, `step` at a time. status is
 * not set. The limits of the first call apply to all calls.
 */
void transcript_of_server(const struct framing_limits *limits, const uint8_t *data, size_t len, size_t step,
                          struct transcript *transcript);

#endif
