#include "http/stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "http/tls.h"

#define FLUSH_SIZE 16384 /* bytes of a TLS record */

/* Watch the events that are needed now. */
static int
watch(struct stream *stream)
{
        struct event *event = &stream->event;
        short what = (short)((stream->is_reading ? stream->read_needs : 0) |
                             (stream->unsent == NULL ? 0 : stream->write_needs));

        if (what == stream->watched)
                return 0;
        (void)event_del(event);
        stream->watched = 0;
        if (what == 0)
                return 0;
        if (event_assign(event, event_get_base(event), stream->fd, (short)(what | EV_PERSIST),
                         event_get_callback(event), event_get_callback_arg(event)) != 0 ||
            event_add(event, NULL) != 0)
                return -1;
        stream->watched = what;
        return 0;
}

void
stream_open(struct stream *stream, struct event_base *base, evutil_socket_t fd, event_callback_fn callback,
            void *arg)
{
        *stream = (struct stream){.fd = fd, .read_needs = EV_READ, .write_needs = EV_WRITE};
        (void)event_assign(&stream->event, base, fd, EV_READ | EV_PERSIST, callback, arg);
}

int
stream_use_tls(struct stream *stream, SSL *session)
{
        if (session == NULL)
                return -1;
        stream->session = session;
        if (SSL_set_fd(session, stream->fd) != 1)
                return -1;
        SSL_set_accept_state(session);
        return 0;
}

/* Translate the result of an OpenSSL function that did not succeed; *needs is the event that it waits for. */
static int
judge(struct stream *stream, int result, short *needs)
{
        switch (SSL_get_error(stream->session, result)) {
        case SSL_ERROR_WANT_WRITE:
                *needs = EV_WRITE;
                return STREAM_LATER;
        case SSL_ERROR_WANT_READ:
                *needs = EV_READ;
                return STREAM_LATER;
        case SSL_ERROR_ZERO_RETURN:
                return STREAM_END;
        default:
                if (stream->tls_error == 0)
                        stream->tls_error = ERR_peek_last_error();
                ERR_clear_error();
                return STREAM_BROKEN;
        }
}

int
stream_shake_hands(struct stream *stream)
{
        int result, verdict;

        ERR_clear_error();
        stream->read_needs = EV_READ;
        result = SSL_do_handshake(stream->session);
        verdict = result == 1 ? 1 : judge(stream, result, &stream->read_needs);
        if (verdict == STREAM_END || watch(stream) != 0)
                return STREAM_BROKEN;
        return verdict;
}

int
stream_watch(struct stream *stream, int reads)
{
        stream->is_reading = reads;
        return watch(stream);
}

static ssize_t
read_session(struct stream *stream, void *data, size_t size)
{
        size_t n;
        int result;

        ERR_clear_error();
        stream->read_needs = EV_READ;
        result = SSL_read_ex(stream->session, data, size, &n);
        if (!SSL_in_init(stream->session)) /* it may have read the message that a write waits for */
                stream->write_needs = EV_WRITE;
        return result == 1 ? (ssize_t)n : judge(stream, result, &stream->read_needs);
}

static ssize_t
read_socket(const struct stream *stream, void *data, size_t size)
{
        ssize_t n = recv(stream->fd, data, size, 0);

        if (n > 0)
                return n;
        if (n == 0)
                return STREAM_END;
        return errno == EAGAIN || errno == EINTR ? STREAM_LATER : STREAM_BROKEN;
}

ssize_t
stream_read(struct stream *stream, void *data, size_t size)
{
        ssize_t n;

        if (stream->session == NULL)
                return read_socket(stream, data, size);
        n = read_session(stream, data, size);
        return watch(stream) == 0 ? n : STREAM_BROKEN;
}

int
stream_has_decrypted(const struct stream *stream)
{
        return stream->session != NULL && SSL_pending(stream->session) > 0;
}

/* Returns the number of bytes written, or STREAM_BROKEN. */
static ssize_t
write_session(struct stream *stream, const char *data, size_t len)
{
        size_t written = 0, n;

        while (written < len) {
                int result;

                ERR_clear_error();
                stream->write_needs = EV_WRITE;
                result = SSL_write_ex(stream->session, data + written, len - written, &n);
                if (result != 1) {
                        result = judge(stream, result, &stream->write_needs);
                        return result == STREAM_LATER ? (ssize_t)written : STREAM_BROKEN;
                }
                written += n;
        }
        return (ssize_t)written;
}

static ssize_t
write_some(struct stream *stream, const char *data, size_t len)
{
        ssize_t n;

        if (stream->session != NULL)
                return write_session(stream, data, len);
        n = send(stream->fd, data, len, MSG_NOSIGNAL);
        if (n >= 0)
                return n;
        return errno == EAGAIN || errno == EINTR ? 0 : STREAM_BROKEN;
}

int
stream_write(struct stream *stream, const void *data, size_t len)
{
        ssize_t n = stream->unsent == NULL ? write_some(stream, data, len) : 0;

        if (n < 0)
                return -1;
        if ((size_t)n == len)
                return watch(stream);
        if (stream->unsent == NULL)
                stream->unsent = evbuffer_new();
        if (stream->unsent == NULL ||
            evbuffer_add(stream->unsent, (const char *)data + n, len - (size_t)n) != 0)
                return -1;
        return watch(stream);
}

int
stream_flush(struct stream *stream)
{
        size_t len;

        while (stream->unsent != NULL && (len = evbuffer_get_length(stream->unsent)) > 0) {
                size_t size = len < FLUSH_SIZE ? len : FLUSH_SIZE;
                const unsigned char *data = evbuffer_pullup(stream->unsent, (ev_ssize_t)size);
                ssize_t n = data == NULL ? STREAM_BROKEN : write_some(stream, (const char *)data, size);

                if (n < 0)
                        return -1;
                if (n == 0)
                        return watch(stream);
                (void)evbuffer_drain(stream->unsent, (size_t)n);
        }
        if (stream->unsent != NULL)
                evbuffer_free(stream->unsent);
        stream->unsent = NULL;
        return watch(stream);
}

int
stream_is_flushed(const struct stream *stream)
{
        return stream->unsent == NULL;
}

void
stream_end_writing(struct stream *stream)
{
        tls_say_goodbye(stream->session);
        (void)shutdown(stream->fd, SHUT_WR);
}

void
stream_stop(struct stream *stream)
{
        if (stream->fd >= 0)
                (void)event_del(&stream->event);
        stream->watched = 0;
}

void
stream_close(struct stream *stream)
{
        if (stream->fd < 0)
                return;
        stream_stop(stream);
        SSL_free(stream->session);
        if (stream->unsent != NULL)
                evbuffer_free(stream->unsent);
        (void)close(stream->fd);
        stream->fd = -1;
}
