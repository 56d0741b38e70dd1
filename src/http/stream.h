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
 * The bytes of a connection: a non-blocking socket, with TLS or without, that an event base watches. For the files of http/
 * alone.
 *
 * It reads and writes at once, and only what a socket does not take waits in a buffer. libevent's bufferevents would ask how
 * much there is before each read and write in the next pass of the event loop; the one for OpenSSL (2.1.12) reports a
 * close_notify before the bytes that came ahead of it, and a failed write as the client's end.
 */
struct stream {
        evutil_socket_t fd; /* -1: it is not open */
        SSL *session;       /* NULL: without TLS */
        struct event event;
        struct evbuffer *unsent; /* what the socket has not taken yet; NULL: nothing */
        unsigned long tls_error; /* OpenSSL's code of why the session broke; 0: there is none */
        short watched;           /* EV_READ and EV_WRITE, as they are watched */
        short reads;             /* EV_READ: the owner wants to read */
        short blocked;           /* EV_WRITE: TLS cannot go on before it has written */
};

#define STREAM_LATER 0 /* when the base calls back */
#define STREAM_END (-1)
#define STREAM_BROKEN (-2)

/**
 * stream_open(stream, base, fd, callback, arg):
 * Take over a socket. callback is called from the event loop when there is something to read, if stream_watch() wants that,
 * and when the socket takes more: the callee calls stream_flush() and stream_read().
 */
void stream_open(struct stream *stream, struct event_base *base, evutil_socket_t fd,
                 event_callback_fn callback, void *arg);

/* Speak TLS from now on, as the server; takes the session over. NULL fails. Returns 0, or -1 when memory fails. */
int stream_use_tls(struct stream *stream, SSL *session) MUST_CHECK;

/* Go on with the handshake. Returns 1 when it is done, STREAM_LATER or STREAM_BROKEN. */
int stream_shake_hands(struct stream *stream) MUST_CHECK;

/* Watch for something to read, or not. Returns 0, or -1 when memory or descriptors fail. */
int stream_watch(struct stream *stream, int reads) MUST_CHECK;

/* Read `size` bytes at most, at least one. Returns their number, STREAM_LATER, STREAM_END when the client sends no more, or STREAM_BROKEN. */
ssize_t stream_read(struct stream *stream, void *data, size_t size) MUST_CHECK;

/* Whether there are decrypted bytes to read, for which the base will not call back. */
int stream_has_decrypted(const struct stream *stream);

/* Write; what the socket does not take now is copied, for stream_flush(). Returns 0, or -1: it is broken, or memory fails. */
int stream_write(struct stream *stream, const void *data, size_t len) MUST_CHECK;

/* Write what could not be written before. Returns 0, or -1: it is broken. */
int stream_flush(struct stream *stream) MUST_CHECK;

/* Whether all has left the process. */
int stream_is_flushed(const struct stream *stream);

/* Nothing more is written: tell the client, by close_notify with TLS. */
void stream_end_writing(struct stream *stream);

/* Call back no more. */
void stream_stop(struct stream *stream);

/* Close the socket and free what the stream has. One that is not open is left alone. */
void stream_close(struct stream *stream);

#endif
