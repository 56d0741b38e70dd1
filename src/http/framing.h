#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "http/head.h"

/*
 * Splits a connection's bytes into requests, strictly by RFC 9112. Pure: no socket, no clock. The caller
 * feeds heads, chunk lines and trailers to framing_feed(); it keeps the bytes of bodies and reports their
 * number:
 *
 *   head --> FRAMING_HEAD --> FRAMING_DATA, framing_skip() until left is 0 --> FRAMING_END --> next head
 *                  |              ^___________for each chunk_____________|        ^
 *                  `---without a body---------------------------------------------'
 */
enum framing_state {
        FRAMING_IN_HEAD,
        FRAMING_IN_BODY, /* with Content-Length */
        FRAMING_IN_CHUNK_LINE,
        FRAMING_IN_CHUNK,
        FRAMING_AFTER_CHUNK, /* CRLF after a chunk's data */
        FRAMING_IN_TRAILER,  /* trailer fields and the empty line after them */
        FRAMING_AT_END,
};

enum framing_verdict {
        FRAMING_MORE,    /* all bytes were consumed; more are needed */
        FRAMING_HEAD,    /* the head is complete */
        FRAMING_DATA,    /* `left` bytes of the body follow; report them to framing_skip() */
        FRAMING_END,     /* the request is complete */
        FRAMING_REFUSED, /* see fault; read no more from this connection */
};

struct framing_limits {
        /*
         * Bytes of a head, at most HEAD_TEXT_MAX; also the limit of all chunk extensions and trailer fields
         * together.
         */
        size_t max_header_bytes;
        size_t max_headers; /* header lines */
        uint64_t max_body;  /* bytes of a body */
};

struct framing {
        const struct framing_limits *limits;
        enum framing_state state;
        char *text; /* the incomplete head, chunk line or trailer line, from the pool */
        size_t len;
        size_t size;             /* bytes allocated for text; grows to max_header_bytes */
        size_t line;             /* offset of the incomplete line of a head */
        struct head head;        /* its complete lines */
        uint64_t left;           /* bytes missing from the body or chunk */
        uint64_t body_len;       /* bytes of a chunked body so far, including the current chunk */
        size_t n_besides;        /* bytes of chunk extensions and trailer fields so far */
        struct head_fault fault; /* status 400, 413, 414, 417, 501 or 503 */
};

/* limits outlives the framing; the caller may change them. */
void framing_init(struct framing *framing, const struct framing_limits *limits);

/* Free memory. Between requests, the framing can still be used. */
void framing_clear(struct framing *framing);

/**
 * framing_feed(framing, data, len, used):
 * Parse bytes outside bodies; *used is the number consumed before the verdict. len may be 0, to get a verdict
 * that needs no more bytes. A Content-Length above max_body is refused with 413; the head is then available
 * as after FRAMING_HEAD.
 */
enum framing_verdict framing_feed(struct framing *framing, const char *data, size_t len,
                                  size_t *used) MUST_CHECK;

/* Report that n bytes of the body have been read, at most `left`. */
void framing_skip(struct framing *framing, uint64_t n);

/**
 * framing_take_head(framing, head):
 * After FRAMING_HEAD or 413: hand over the head and its text. The caller frees them by head_clear() and
 * pool_free(). Names and values in the text are NUL-terminated.
 */
char *framing_take_head(struct framing *framing, struct head *head) MUST_CHECK;

/* Returns 1 when a request has begun and is not complete. */
int framing_is_inside(const struct framing *framing);

#endif
