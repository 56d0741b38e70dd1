#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "http/head.h"

/*
 * Follows the messages on a connection byte by byte, strictly by RFC 9112, and judges them before evhttp acts on them.
 * Pure: no socket, no clock. It refuses more than the RFC does where evhttp 2.1 would take the rest for something else:
 * chunk extensions, trailer fields, and empty lines before a request.
 *
 *   HEAD --empty line--> LENGTH_BODY --all bytes--> HEAD
 *                    `-> CHUNK_SIZE -> CHUNK_DATA -> CHUNK_END -> CHUNK_SIZE ...
 *                             `--last chunk--> LAST_LINE --> HEAD
 */
enum framing_state {
        FRAMING_HEAD,
        FRAMING_LENGTH_BODY,
        FRAMING_CHUNK_SIZE,
        FRAMING_CHUNK_DATA,
        FRAMING_CHUNK_END, /* CRLF after a chunk's data */
        FRAMING_LAST_LINE, /* CRLF after the last chunk */
};

enum framing_verdict {
        FRAMING_MORE,    /* all bytes are used, and more are to come */
        FRAMING_BODY,    /* the head is complete, a body follows; go on feeding */
        FRAMING_MESSAGE, /* the message is complete; go on feeding for the next one */
        FRAMING_REFUSED, /* see the fault; nothing more is to be read from this connection */
};

struct framing {
        size_t max_header_bytes;
        uint64_t max_body;
        enum framing_state state;
        char *line; /* the head, or a line, as far as it has come; of max_header_bytes */
        size_t line_len;
        struct head head;        /* of the message under way, once its head is complete */
        uint64_t left;           /* bytes of the body or the chunk that are still to come */
        uint64_t body_len;       /* bytes of a chunked body so far, this chunk included */
        struct head_fault fault; /* status 400, 413, 417, 501 or 503, and the reason */
};

/* Returns 0, or -1 when memory fails. */
int framing_init(struct framing *framing, size_t max_header_bytes, uint64_t max_body) MUST_CHECK;
void framing_clear(struct framing *framing);

/* Feed bytes; *used says how many were taken before the verdict. head's texts are valid until the next call. */
enum framing_verdict framing_feed(struct framing *framing, const char *data, size_t len,
                                  size_t *used) MUST_CHECK;

/* Whether a message has begun and is not complete. */
int framing_is_inside(const struct framing *framing);

#endif
