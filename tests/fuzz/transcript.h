#ifndef TESTS_FUZZ_TRANSCRIPT_H
#define TESTS_FUZZ_TRANSCRIPT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "http/framing.h"
#include "http/request.h"

/* A mistake that the fuzzer is to find ends the process, so that the fuzzer keeps the input. */
#define MUST(condition) ((condition) ? (void)0 : abort())

#define TRANSCRIPT_MAX 256 /* more than 4096 bytes can hold */

/* What a reader took for messages: of each its method, path, headers and body, written as one text. */
struct transcript {
        struct {
                char *text;
                size_t len;
        } messages[TRANSCRIPT_MAX];
        size_t n;
        int status; /* of a refusal, or 0 */
};

void transcript_clear(struct transcript *transcript);

/* Fails unless the first n messages are the same. */
void transcript_compare(const struct transcript *a, const struct transcript *b, size_t n);

/* Add a request as a handler gets it. */
void transcript_take(struct transcript *transcript, struct http_request *request);

/* What framing.c makes of the bytes, fed so many at a time. */
void transcript_of_framing(const struct framing_limits *limits, const uint8_t *data, size_t len, size_t step,
                           struct transcript *transcript);

/**
 * transcript_of_server(limits, data, len, step, transcript):
 * What a handler gets when the bytes come, so many at a time, to a server of http/server.h. Of a refusal nothing is told. The
 * limits are those of the first call.
 */
void transcript_of_server(const struct framing_limits *limits, const uint8_t *data, size_t len, size_t step,
                          struct transcript *transcript);

#endif
