#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "http/head.h"

/*
 * Follows the messages on a connection byte by byte, strictly by RFC 9112, and judges them before evhttp acts on them.
 * Pure: no socket, no clock. Beyond what the RFC asks, it refuses what evhttp 2.1 or a proxy could take for something else.
 *
 *   HEAD --empty line--> LENGTH_BODY --all bytes--> HEAD
 *                    `-> CHUNK_SIZE -> CHUNK_DATA -> CHUNK_END -> CHUNK_SIZE ...
 *                             `--last chunk--> TRAILER --empty line--> HEAD
 *
 * What is legal and evhttp 2.1 cannot read is overwritten with as many bytes that say the same to it; never of a body:
 *
 *   a tab between a header's colon and its value   a space, since it skips only spaces there
 *   a chunk's extension                            spaces, which it skips after a chunk's size
 *   the last chunk's line end, and trailer fields  spaces too, so that the last chunk's line goes on to their end, and
 *   the line end after those                       LF LF, two line ends: of that line, and of a trailer section without fields
 */
enum framing_state {
        FRAMING_HEAD,
        FRAMING_LENGTH_BODY,
        FRAMING_CHUNK_SIZE,
        FRAMING_CHUNK_DATA,
        FRAMING_CHUNK_END, /* CRLF after a chunk's data */
        FRAMING_TRAILER,   /* trailer fields, and the empty line after them */
};

enum framing_verdict {
        FRAMING_MORE,    /* all bytes are used, and more are to come */
        FRAMING_BODY,    /* the head is complete, a body follows; go on feeding */
        FRAMING_MESSAGE, /* the message is complete; go on feeding for the next one */
        FRAMING_REFUSED, /* see the fault; nothing more is to be read from this connection */
};

struct framing_limits {
        size_t
            max_header_bytes; /* of a head; as many again of chunk extensions and trailer fields together */
        size_t max_headers;   /* header lines */
        uint64_t max_body;    /* bytes of a body */
};

/* Where in a head the next byte stands. */
enum framing_place { FRAMING_IN_NAME, FRAMING_BEFORE_VALUE, FRAMING_IN_VALUE };

struct framing {
        struct framing_limits limits;
        enum framing_state state;
        enum framing_place place;
        char *line; /* the head, or a line, as far as it has come */
        size_t line_len;
        size_t line_size;        /* memory of line; it grows up to max_header_bytes */
        size_t line_start;       /* of the line under way, in a head */
        struct head head;        /* of the message under way, as far as its lines have come */
        uint64_t left;           /* bytes of the body or the chunk that are still to come */
        uint64_t body_len;       /* bytes of a chunked body so far, this chunk included */
        uint64_t n_chunks;       /* chunks so far */
        size_t n_besides;        /* bytes of chunk extensions and trailer fields so far */
        struct head_fault fault; /* status 400, 413, 414, 417, 501 or 503, and the reason */
};

void framing_init(struct framing *framing, const struct framing_limits *limits);

/* Give memory back. Between messages the framing may go on to be used. */
void framing_clear(struct framing *framing);

/**
 * framing_feed(framing, data, len, used):
 * Feed bytes, which may be overwritten for evhttp; *used says how many were taken before the verdict. head's texts are valid
 * until the next call or framing_clear().
 */
enum framing_verdict framing_feed(struct framing *framing, char *data, size_t len, size_t *used) MUST_CHECK;

/*
 * Memory that evhttp may take for the body under way beyond its bytes. A chunk whose bytes come alone is kept in a buffer of
 * its own, of 1 KiB, or 8 KiB under TLS, however few they are.
 */
uint64_t framing_slack(const struct framing *framing);

/* Whether a message has begun and is not complete. */
int framing_is_inside(const struct framing *framing);

#endif
