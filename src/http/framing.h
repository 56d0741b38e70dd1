#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "http/head.h"

/*
 * Finds the messages on a connection, strictly by RFC 9112. Pure: no socket, no clock. Heads, chunk lines and trailers are
 * fed to framing_feed(); the bytes of a body stay with the caller, who says how many have come:
 *
 *   head --> FRAMING_HEAD --> FRAMING_DATA, framing_skip() until left is 0, and so for each chunk --> FRAMING_END --> head
 *                        `--without a body-------------------------------------------------------^
 */
enum framing_state {
        FRAMING_IN_HEAD,
        FRAMING_IN_BODY, /* of a length that the head says */
        FRAMING_IN_CHUNK_LINE,
        FRAMING_IN_CHUNK,
        FRAMING_AFTER_CHUNK, /* CRLF after a chunk's data */
        FRAMING_IN_TRAILER,  /* trailer fields, and the empty line after them */
        FRAMING_AT_END,
};

enum framing_verdict {
        FRAMING_MORE,    /* all bytes are used, more are needed */
        FRAMING_HEAD,    /* the head is complete */
        FRAMING_DATA,    /* `left` bytes of the body follow, which go to framing_skip() */
        FRAMING_END,     /* the message is complete */
        FRAMING_REFUSED, /* see fault; nothing more is to be read from this connection */
};

struct framing_limits {
        size_t
            max_header_bytes; /* of a head, up to HEAD_TEXT_MAX; as many again of chunk extensions and trailer fields together */
        size_t max_headers; /* header lines */
        uint64_t max_body;  /* bytes of a body */
};

struct framing {
        const struct framing_limits *limits; /* outlives it, and may change */
        enum framing_state state;
        char *text; /* the head, or a chunk or trailer line, as far as it has come; from the pool */
        size_t len;
        size_t size;             /* memory of text; grows up to max_header_bytes */
        size_t line;             /* where in a head the line under way begins */
        struct head head;        /* as far as its lines have come */
        uint64_t left;           /* bytes of the body or the chunk that are still to come */
        uint64_t body_len;       /* bytes of a chunked body so far, this chunk included */
        size_t n_besides;        /* bytes of chunk extensions and trailer fields so far */
        struct head_fault fault; /* status 400, 413, 414, 417, 501 or 503 */
};

/* limits outlives the framing. */
void framing_init(struct framing *framing, const struct framing_limits *limits);

/* Free memory. Between messages, the framing can still be used. */
void framing_clear(struct framing *framing);

/**
 * framing_feed(framing, data, len, used):
 * Read bytes that are not of a body; *used is how many were read before the verdict. It may be called with len 0, to learn
 * whether anything is known without more bytes. A body that is longer than max_body is refused with 413 when its head is
 * complete: then the head is there as after FRAMING_HEAD.
 */
enum framing_verdict framing_feed(struct framing *framing, const char *data, size_t len,
                                  size_t *used) MUST_CHECK;

/* So many bytes of the body have come, `left` at most. */
void framing_skip(struct framing *framing, uint64_t n);

/**
 * framing_take_head(framing, head):
 * After FRAMING_HEAD, or 413: hand over the head and its text, which the caller frees with head_clear() and pool_free().
 * Names and values in the text are terminated by NUL.
 */
char *framing_take_head(struct framing *framing, struct head *head) MUST_CHECK;

/* Whether a message has begun and is not complete. */
int framing_is_inside(const struct framing *framing);

#endif
