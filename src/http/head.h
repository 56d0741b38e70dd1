#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define HEAD_METHOD_MAX 16

/* What the head of a request says of itself and of the body that follows. Spans point into the parsed text. */
struct head {
        char method[HEAD_METHOD_MAX + 1];
        const char
            *path; /* the target's bytes before `?`; of an absolute-form target those after the authority */
        size_t path_len;
        int chunked;
        uint64_t content_length; /* 0 when there is none */
};

/* Why a head is refused. */
struct head_fault {
        int status; /* 400, 417 for an expectation, or 501 for a method that evhttp does not know */
        const char *reason;
};

/**
 * head_parse(text, len, head, fault):
 * Read a request line and headers, up to and including the empty line, by RFC 9112, and refuse whatever two readers might
 * take differently (RFC 9112 sections 2.2, 3, 5, 6 and 11.2). The text has no bare CR or LF and no NUL. Returns 0, or -1
 * with the fault.
 */
int head_parse(const char *text, size_t len, struct head *head, struct head_fault *fault) MUST_CHECK;

/* The path of a request target. Returns where it begins. */
const char *head_target_path(const char *target, size_t len, size_t *path_len);

#endif
