#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define HEAD_METHOD_MAX 16

/* What the head of a request says of itself and of the body that follows. Spans point into the text that was taken. */
struct head {
        char method[HEAD_METHOD_MAX + 1];
        const char
            *path; /* the target's bytes before `?`; of an absolute-form target those after the authority */
        size_t path_len;
        int chunked;
        uint64_t content_length; /* 0 when there is none */

        /* for head.c alone, over the lines: */
        size_t n_fields;
        unsigned n_hosts;
        unsigned n_lengths;
        unsigned n_encodings;
        int expects_more; /* than to be told to go on */
        int minor;        /* of the version HTTP/1.x */
};

/* Why a head is refused. */
struct head_fault {
        int status; /* 400, 417 for an expectation, or 501 for a method that evhttp does not know */
        const char *reason;
};

/**
 * head_take(head, line, len, fault):
 * Read the next line, without its CR LF, by RFC 9112, and refuse whatever two readers might take differently (RFC 9112
 * sections 2.2, 3, 5, 6 and 11.2). The first, with a head that is all zero, is the request line. A line has no bare CR or LF
 * and no NUL. Returns 0, or -1 with the fault.
 */
int head_take(struct head *head, const char *line, size_t len, struct head_fault *fault) MUST_CHECK;

/* The empty line has come: judge what the lines only say together. Returns 0, or -1 with the fault. */
int head_end(const struct head *head, struct head_fault *fault) MUST_CHECK;

#endif
