#include "http/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>

#include "http/date.h"
#include "http/envelope.h"
#include "http/phrase.h"
#include "http/tls.h"

#define LINGER_S 1
#define LINGER_BYTES (8u << 20)
#define WRITE_TIMEOUT_S 5
#define HASTE_US 10000 /* when memory is wanted: an answer that does not go out at once does not go out */

struct refusal {
        struct bufferevent *bev;
        struct event *timer;
        size_t drained;
        int lingers;
        int answered;
        /* evhttp's */
        bufferevent_data_cb read_cb;
        bufferevent_data_cb write_cb;
        bufferevent_event_cb event_cb;
        void *arg;
};

/* Hand the connection back as broken. evhttp frees it, and through its close callback this refusal. */
static void
finish(struct refusal *refusal)
{
        struct bufferevent *bev = refusal->bev;
        bufferevent_event_cb event_cb = refusal->event_cb;
        void *arg = refusal->arg;

        bufferevent_setcb(bev, refusal->read_cb, refusal->write_cb, event_cb, arg);
        event_cb(bev, BEV_EVENT_READING | BEV_EVENT_ERROR, arg);
}

/*
 * What arg is cannot be relied on: evhttp may have put off reading on before the connection was refused, and then calls
 * whatever read callback there is with an argument of its own.
 */
static void
on_read(struct bufferevent *bev, void *arg)
{
        struct evbuffer *input = bufferevent_get_input(bev);
        struct refusal *refusal;

        bufferevent_getcb(bev, NULL, NULL, NULL, &arg);
        refusal = arg;
        refusal->drained += evbuffer_get_length(input);
        (void)evbuffer_drain(input, evbuffer_get_length(input));
        if (refusal->drained > LINGER_BYTES)
                finish(refusal);
}

static void
on_written(struct bufferevent *bev, void *arg)
{
        const struct timeval linger = {LINGER_S, 0};
        struct refusal *refusal = arg;

        if (refusal->answered)
                return;
        refusal->answered = 1;
        if (!refusal->lingers) {
                finish(refusal);
                return;
        }
        tls_say_goodbye(bufferevent_openssl_get_ssl(bev));
        (void)shutdown(bufferevent_getfd(bev), SHUT_WR);
        (void)evtimer_add(refusal->timer, &linger);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
        (void)bev;
        if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
                finish(arg);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        finish(arg);
}

static const char *
code_for(int status)
{
        switch (status) {
        case 404:
                return "NOT_FOUND";
        case 405:
                return "METHOD_NOT_ALLOWED";
        case 408:
                return "REQUEST_TIMEOUT";
        case 413:
                return "PAYLOAD_TOO_LARGE";
        case 414:
                return "URI_TOO_LONG";
        case 417:
                return "EXPECTATION_FAILED";
        case 501:
                return "NOT_IMPLEMENTED";
        case 503:
                return "UNAVAILABLE";
        default:
                return "BAD_REQUEST";
        }
}

static const char *
message_for(int status, const char *reason)
{
        if (status == 404)
                return "no source has this path";
        return status == 405 ? "deliveries come by POST" : reason;
}

/* A header that goes with a status, or nothing. */
static const char *
header_for(int status)
{
        if (status == 503)
                return "Retry-After: 2\r\n";
        return status == 405 ? "Allow: POST\r\n" : "";
}

char *
refusal_answer(int status, const char *reason, const char *request_id, size_t *len)
{
        char *body = envelope_error(code_for(status), message_for(status, reason), NULL, 0, request_id, len);
        char *answer = NULL;
        int n;

        if (body == NULL)
                return NULL;
        n = asprintf(&answer,
                     "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                     "%sConnection: close\r\nDate: %s\r\nx-request-id: %s\r\n\r\n%s",
                     status, phrase_for(status), *len, header_for(status), date_now(), request_id, body);
        free(body);
        if (n < 0)
                return NULL;
        *len = (size_t)n;
        return answer;
}

static int
write_answer(struct bufferevent *bev, int status, const char *reason, const char *request_id)
{
        size_t len;
        char *answer = refusal_answer(status, reason, request_id, &len);
        int result = answer == NULL ? -1 : evbuffer_add(bufferevent_get_output(bev), answer, len);

        free(answer);
        return result;
}

struct refusal *
refusal_new(struct bufferevent *bev, int status, const char *reason, const char *request_id, int lingers)
{
        const struct timeval limit = {WRITE_TIMEOUT_S, 0}, haste = {0, HASTE_US};
        struct refusal *refusal = calloc(1, sizeof(*refusal));

        if (refusal == NULL)
                return NULL;
        refusal->bev = bev;
        refusal->lingers = lingers;
        refusal->timer = evtimer_new(bufferevent_get_base(bev), on_timer, refusal);
        if (refusal->timer == NULL || write_answer(bev, status, reason, request_id) != 0) {
                refusal_free(refusal);
                return NULL;
        }
        bufferevent_getcb(bev, &refusal->read_cb, &refusal->write_cb, &refusal->event_cb, &refusal->arg);
        bufferevent_setcb(bev, on_read, on_written, on_event, refusal);
        (void)bufferevent_enable(bev, EV_READ | EV_WRITE);
        (void)evtimer_add(refusal->timer, refusal->lingers ? &limit : &haste);
        return refusal;
}

void
refusal_free(struct refusal *refusal)
{
        if (refusal == NULL)
                return;
        if (refusal->timer != NULL)
                event_free(refusal->timer);
        free(refusal);
}
