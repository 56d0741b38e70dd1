#include "http/gate.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/connections.h"
#include "http/gate_accept.h"
#include "http/gate_read.h"
#include "http/gate_write.h"
#include "http/proxy_protocol.h"
#include "http/request_state.h"

#define MEMORY_WAIT_MS 2000
#define LINGER_MS 1000
#define LINGER_BYTES (8u << 20)

/* Deadlines and states */

static void
arm(struct connection *connection, int64_t now_ms)
{
        int64_t left = connection->deadline_ms - now_ms;
        struct timeval in;

        left = left < 0 ? 0 : left;
        in = (struct timeval){left / 1000, left % 1000 * 1000};
        if (evtimer_add(&connection->timer, &in) == 0)
                connection->armed_ms = connection->deadline_ms;
}

/* Return the time limit of a state in ms, counted from since_ms. */
static uint64_t
deadline_of(const struct http_limits *limits, enum gate_state state)
{
        switch (state) {
        case GATE_ACCEPTED:
        case GATE_PROXY:
        case GATE_HEAD:
                return limits->header_timeout_ms;
        case GATE_HANDSHAKE:
                return limits->handshake_timeout_ms;
        case GATE_IDLE:
                return limits->idle_timeout_ms;
        case GATE_BODY:
        case GATE_REPLYING:
                return limits->request_timeout_ms;
        case GATE_WAITING:
                return MEMORY_WAIT_MS;
        case GATE_HANDLING:
                return limits->handling_timeout_ms;
        case GATE_LINGERING:
        case GATE_ENDED:
        case GATE_N_STATES:
                break;
        }
        return LINGER_MS;
}

/*
 * Setting a timer is expensive, a request has several deadlines, and nearly all of them are met. So a timer
 * that fires before the new deadline is left alone; when it fires, it is set to the deadline.
 */
void
gate_enter(struct connection *connection, enum gate_state state)
{
        int64_t now_ms = clock_coarse_ms(), begin_ms = now_ms;

        if (state == GATE_BODY && (connection->state == GATE_HEAD || connection->state == GATE_WAITING))
                begin_ms = connection->since_ms; /* the same request continues */
        else if (state != GATE_WAITING)
                connection->since_ms = now_ms;
        connections_move(connection, state);
        connection->deadline_ms = begin_ms + (int64_t)deadline_of(&connection->all->limits, state);
        if (connection->armed_ms == 0 || connection->deadline_ms < connection->armed_ms)
                arm(connection, now_ms);
}

void
gate_advance_later(struct connection *connection)
{
        event_active(&connection->timer, EV_READ, 1);
}

/* The end */

/* When evhttp frees its side, it removes its callbacks from the letter box. */
int
gate_evhttp_is_gone(const struct connection *connection)
{
        bufferevent_event_cb event_cb = NULL;

        bufferevent_getcb(connection->letter_box, NULL, NULL, &event_cb, NULL);
        return event_cb == NULL;
}

/* Send close_notify, or log why the session has failed. Return the reason of the end, a constant, or NULL. */
static const char *
end_session(struct connection *connection, enum http_end why)
{
        SSL *session = connection->stream.session;
        unsigned long code = connection->stream.tls_error;
        const char *reason = NULL;

        if (why == HTTP_END_PROXY_HEADER)
                return proxy_header_fault(connection->proxy_header);
        if (session == NULL)
                return NULL;
        if (why == HTTP_END_CLOSED || why == HTTP_END_HANDSHAKE_FAILED)
                reason = tls_log_end(session, connection->state == GATE_HANDSHAKE, code, &connection->client);
        if (code == 0)
                tls_say_goodbye(session);
        return reason;
}

void
gate_drop_request(struct connection *connection)
{
        struct http_request *request = connection->request;

        connection->request = NULL;
        if (request == NULL)
                return;
        if (connection->state == GATE_WAITING)
                memory_budget_stop_waiting(connection->all->limits.budget, &request->waiter);
        if (request->evreq == NULL)
                request_free(request);
        else
                request->connection = NULL;
}

/* Whether there was a request, and the last one has its answer: the client may not have read it all. */
static int
is_answered(const struct connection *connection)
{
        return connection->state == GATE_REPLYING || connection->state == GATE_LINGERING ||
               (connection->state == GATE_IDLE && connection->has_asked);
}

void
gate_end(struct connection *connection, enum http_end why)
{
        struct connections *all = connection->all;
        const char *reason;

        if (connection->state == GATE_ENDED)
                return;
        if (why == HTTP_END_CLOSED)
                why = connection->state == GATE_HANDSHAKE ? HTTP_END_HANDSHAKE_FAILED : connection->end;
        reason = end_session(connection, why);
        gate_drop_request(connection);
        stream_stop(&connection->stream);
        connections_count_out(connection, why);
        if (all->callbacks.on_closed != NULL)
                all->callbacks.on_closed(why, is_answered(connection), reason, &connection->client, all->arg);
        if (connection->is_counted)
                clients_disconnect(all->limits.clients, &connection->client);
        connections_move(connection, GATE_ENDED);
        connection->deadline_ms = 0;
        gate_advance_later(connection);
}

/* Discard input that follows the last request. */
static void
linger_on(struct connection *connection)
{
        connection->n_lingered += connection->input_len;
        gate_consume(connection, connection->input_len);
        if (connection->n_lingered > LINGER_BYTES)
                gate_end(connection, HTTP_END_CLOSED);
}

/* Take one step. Returns 1 when another may be possible. */
static int
advance(struct connection *connection)
{
        switch (connection->state) {
        case GATE_IDLE:
        case GATE_HEAD:
        case GATE_BODY:
                return gate_read(connection);
        case GATE_HANDLING:
                if (!connection->is_replied)
                        return 0;
                gate_carry_answer(connection);
                return 1;
        case GATE_LINGERING:
                linger_on(connection);
                return 0;
        default:
                return 0;
        }
}

/* Returns 1 while the next request must wait. */
static int
is_busy(const struct connection *connection)
{
        return connection->state == GATE_WAITING || connection->state == GATE_HANDLING ||
               connection->state == GATE_REPLYING;
}

static int
is_opening(const struct connection *connection)
{
        return connection->state == GATE_ACCEPTED || connection->state == GATE_PROXY ||
               connection->state == GATE_HANDSHAKE;
}

/* Returns 1 to watch for input. While busy, at most one read is kept for later. */
static int
wants_input(const struct connection *connection)
{
        return !connection->is_at_eof && connection->input_len == 0;
}

void
gate_advance(struct connection *connection)
{
        if (connection->is_advancing || is_opening(connection))
                return;
        connection->is_advancing = 1;
        do {
                while (!connection->is_broken && advance(connection))
                        ;
        } while (connection->state != GATE_ENDED && !is_busy(connection) &&
                 stream_has_decrypted(&connection->stream) && gate_receive(connection));
        connection->is_advancing = 0;
        if (connection->state == GATE_ENDED)
                return;
        gate_keep_input(connection);
        if (connection->is_broken || (connection->is_at_eof && !is_busy(connection)) ||
            stream_watch(&connection->stream, wants_input(connection)) != 0)
                gate_end(connection, HTTP_END_CLOSED);
}

static void
flush(struct connection *connection)
{
        if (stream_flush(&connection->stream) != 0)
                connection->is_broken = 1;
        else if (connection->state == GATE_REPLYING && stream_is_flushed(&connection->stream))
                gate_end_reply(connection);
}

void
gate_on_ready(evutil_socket_t fd, short what, void *arg)
{
        struct connection *connection = arg;

        (void)fd;
        (void)what;
        switch (connection->state) {
        case GATE_PROXY:
                gate_read_proxy(connection);
                break;
        case GATE_HANDSHAKE:
                gate_shake_hands(connection);
                break;
        default:
                if (!stream_is_flushed(&connection->stream))
                        flush(connection);
                (void)gate_receive(connection);
                gate_advance(connection);
                break;
        }
}

/* The deadline of the state has passed. */
static void
expire(struct connection *connection)
{
        switch (connection->state) {
        case GATE_HANDSHAKE:
                tls_log_timeout(&connection->client);
                gate_end(connection, HTTP_END_HANDSHAKE_TIMEOUT);
                break;
        case GATE_IDLE:
                gate_end(connection, HTTP_END_IDLE);
                break;
        case GATE_HEAD:
        case GATE_BODY:
                gate_refuse(connection, 408, "the request came too slowly");
                break;
        case GATE_WAITING:
                if (memory_budget_result(connection->all->limits.budget, &connection->request->waiter) > 0)
                        gate_take_granted(connection);
                else
                        gate_refuse(connection, 503, "no room for the body; send it again");
                break;
        case GATE_LINGERING:
                gate_end(connection, HTTP_END_CLOSED);
                break;
        default:
                gate_end(connection, HTTP_END_SLOW);
                break;
        }
}

void
gate_on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct connection *connection = arg;
        int64_t now_ms = clock_coarse_ms();

        (void)fd;
        connection->armed_ms = 0; /* event_active() removes the timeout, too */
        if (connection->state == GATE_ENDED) {
                connection_free(connection);
                return;
        }
        if (connection->state == GATE_ACCEPTED && (what & EV_READ))
                gate_attach(connection);
        else if (connection->deadline_ms <= now_ms)
                expire(connection);
        if (connection->state != GATE_ENDED && connection->armed_ms == 0)
                arm(connection, now_ms);
        gate_advance(connection);
}
