#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include <stddef.h>
#include <sys/types.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include <openssl/ssl.h>

#include "base/compiler.h"

/*
 * A non-blocking socket, plain or with TLS, watched by an event base. Private to http/.
 *
 * A stream reads and writes at once; it buffers only what the socket does not take. Why not bufferevents:
 * they call FIONREAD before each read and write in the next pass of the event loop, and the OpenSSL one
 * (libevent 2.1.12) reports a close_notify before the bytes ahead of it, and a failed write as an end of the
 * stream.
 */
struct stream {
        evutil_socket_t fd; /* -1: not open */
        SSL *session;       /* NULL: plain */
        struct event event;
        struct evbuffer *unsent; /* written, but not taken by the socket yet; NULL: nothing */
        unsigned long tls_error; /* OpenSSL's code of the error that broke the session; 0: none */
        short watched;           /* the events that are watched: EV_READ, EV_WRITE */
        int is_reading;          /* the owner wants input */
        /*
         * The event to await before the next read and the next write: TLS may have to write first, or to
         * read.
         */
        short read_needs;
        short write_needs;
};

#define STREAM_LATER 0 /* try again when the base calls back */
#define STREAM_END (-1)
#define STREAM_BROKEN (-2)

/**
 * stream_open(stream, base, fd, callback, arg):
 * Take ownership of a socket. The event loop calls callback when the socket is readable, if stream_watch()
 * asked for that, and when it is writable again. The callee then calls stream_flush() and stream_read().
 */
void stream_open(struct stream *stream, struct event_base *base, evutil_socket_t fd,
                 event_callback_fn callback, void *arg);

/*
 * Use TLS as the server; takes ownership of the session. Returns 0, or -1 when the session is NULL or memory
 * fails.
 */
int stream_use_tls(struct stream *stream, SSL *session) MUST_CHECK;

/* Continue the handshake. Returns 1 when it is complete, STREAM_LATER or STREAM_BROKEN. */
int stream_shake_hands(struct stream *stream) MUST_CHECK;

/* Watch for input, or stop watching. Returns 0, or -1 when memory or descriptors fail. */
int stream_watch(struct stream *stream, int reads) MUST_CHECK;

/*
 * Read 1 to `size` bytes. Returns their number, STREAM_LATER, STREAM_END at the end of the input, or
 * STREAM_BROKEN.
 */
ssize_t stream_read(struct stream *stream, void *data, size_t size) MUST_CHECK;

/* Returns 1 when decrypted bytes are buffered; the event loop does not call back for them. */
int stream_has_decrypted(const struct stream *stream);

/*
 * Write; bytes that the socket does not take are copied for stream_flush(). Returns 0, or -1: broken or out
 * of memory.
 */
int stream_write(struct stream *stream, const void *data, size_t len) MUST_CHECK;

/* Write buffered bytes. Returns 0, or -1: broken. */
int stream_flush(struct stream *stream) MUST_CHECK;

/* Returns 1 when the socket has taken all bytes. */
int stream_is_flushed(const struct stream *stream);

/* Shut down the sending side, with close_notify under TLS. */
void stream_end_writing(struct stream *stream);

/* Stop calling back. */
void stream_stop(struct stream *stream);

/* Close the socket and free memory. Harmless when not open. */
void stream_close(struct stream *stream);

#endif
