#include "http/connection.h"

#include <stdlib.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "base/clock.h"
#include "http/connections.h"
#include "http/entrance.h"
#include "http/session.h"
#include "http/tap.h"
#include "http/tls_log.h"

static void
arm(struct connection *connection, int64_t now_ms)
{
        int64_t left = connection->deadline_ms - now_ms;
        struct timeval in;

        left = left < 0 ? 0 : left;
        in = (struct timeval){left / 1000, left % 1000 * 1000};
        if (evtimer_add(connection->timer, &in) == 0)
                connection->armed_ms = connection->deadline_ms;
}

/*
 * Nearly all deadlines are met, a request has several, and each setting of a timer costs. So one that fires too early for
 * a later deadline is left as it is: when it fires, it is set anew.
 */
static void
set_deadline(struct connection *connection, int64_t deadline_ms, int64_t now_ms)
{
        connection->deadline_ms = deadline_ms;
        if (deadline_ms != 0 && (connection->armed_ms == 0 || deadline_ms < connection->armed_ms))
                arm(connection, now_ms);
}

/* The list of those that are in the same stage; NULL for those that are handled. */
static struct connection_list *
list_of(struct connections *all, enum stage stage)
{
        switch (stage) {
        case STAGE_ARRIVING:
        case STAGE_HANDSHAKE:
        case STAGE_IDLE:
                return &all->waiting;
        case STAGE_HEAD:
                return &all->heads;
        case STAGE_BODY:
                return &all->bodies;
        case STAGE_REPLYING:
                return &all->replies;
        case STAGE_REFUSED:
                return &all->refusals;
        case STAGE_HANDLING:
                break;
        }
        return NULL;
}

static void
leave_list(struct connection *connection)
{
        struct connection_list *list = list_of(connection->all, connection->stage);

        if (list != NULL)
                TAILQ_REMOVE(list, connection, entry);
}

/* In milliseconds from since_ms; 0: none. */
static uint64_t
deadline_of(const struct http_limits *limits, enum stage stage)
{
        switch (stage) {
        case STAGE_HANDSHAKE:
                return limits->handshake_timeout_ms;
        case STAGE_IDLE:
                return limits->idle_timeout_ms;
        case STAGE_ARRIVING:
        case STAGE_HEAD:
                return limits->header_timeout_ms;
        case STAGE_BODY:
        case STAGE_REPLYING:
                return limits->request_timeout_ms;
        case STAGE_HANDLING:
        case STAGE_REFUSED:
                break;
        }
        return 0;
}

void
connection_enter(struct connection *connection, enum stage stage)
{
        struct connection_list *list = list_of(connection->all, stage);
        int64_t left_ms = (int64_t)deadline_of(&connection->all->limits, stage),
                now_ms = clock_monotonic_ms();

        leave_list(connection);
        if (connection->stage != STAGE_HEAD || stage != STAGE_BODY) /* which go on with the same request */
                connection->since_ms = now_ms;
        connection->stage = stage;
        if (list != NULL)
                TAILQ_INSERT_TAIL(list, connection, entry);
        set_deadline(connection, left_ms == 0 ? 0 : connection->since_ms + left_ms, now_ms);
}

static void
give_room_back(struct connection *connection, uint64_t bytes)
{
        connection->held -= bytes;
        if (connection->all->limits.room != NULL)
                (void)atomic_fetch_sub(&connection->all->limits.room->used, bytes);
}

/*
 * Remove every callback that has the connection as its argument. The bufferevent may outlive the connection: libevent 2.1.12
 * reports a close_notify, on which evhttp frees its connection, before it hands over the bytes that it decrypted just
 * before (bufferevent_openssl.c, do_read()), and would call the input's callback then.
 */
static void
remove_callbacks(struct connection *connection)
{
        (void)evbuffer_remove_cb(bufferevent_get_input(connection->bev), tap_on_input, connection);
        session_detach(connection);
        event_free(connection->timer);
        connection->timer = NULL;
}

void
connection_free(struct connection *connection)
{
        struct connections *all = connection->all;

        if (connection->stage == STAGE_HANDSHAKE && connection->end == HTTP_END_CLOSED)
                connection->end = HTTP_END_HANDSHAKE_FAILED;
        http_census_ended(all->limits.census, connection->end);
        leave_list(connection);
        entrance_stop(connection);
        if (connection->counted)
                clients_disconnect(all->limits.clients, &connection->client);
        give_room_back(connection, connection->held);
        if (connection->fd >= 0 && (size_t)connection->fd < all->by_fd_size)
                all->by_fd[connection->fd] = NULL;
        all->n--;
        refusal_free(connection->refusal);
        framing_clear(&connection->framing);
        remove_callbacks(connection);
        (void)bufferevent_decref(connection->bev);
        free(connection);
}

int
connection_take_room(struct connection *connection, uint64_t bytes)
{
        struct connections *all = connection->all;

        if (all->limits.room == NULL)
                return 0;
        connection->held += bytes;
        connection->held_ahead += bytes;
        if (atomic_fetch_add(&all->limits.room->used, bytes) + bytes <= all->limits.room->max)
                return 0;
        return -1;
}

void
connection_on_close(struct evhttp_connection *evcon, void *arg)
{
        struct connection *connection = arg;

        (void)evcon;
        session_end(connection);
        connection_free(connection);
}

void
connection_break_off(struct connection *connection, enum http_end why)
{
        bufferevent_event_cb event_cb = NULL;
        void *arg = NULL;

        connection->broken_off = 1;
        connection->end = why;
        bufferevent_getcb(connection->bev, NULL, NULL, &event_cb, &arg);
        if (event_cb != NULL)
                event_cb(connection->bev, BEV_EVENT_READING | BEV_EVENT_ERROR, arg);
}

/* Close without an answer, for which memory failed. evhttp sees nothing of it but the end. */
static void
shut(const struct connection *connection)
{
        bufferevent_event_cb event_cb = NULL;
        void *arg = NULL;

        bufferevent_getcb(connection->bev, NULL, NULL, &event_cb, &arg);
        bufferevent_setcb(connection->bev, NULL, NULL, event_cb, arg);
        (void)shutdown(bufferevent_getfd(connection->bev), SHUT_RDWR);
}

/*
 * Whether a client that is refused may take a moment to read why. evhttp keeps what it has of the body until the connection
 * ends, and so could everybody who sends bad bodies keep others out: not when half of the room is taken, or less is left than
 * a body may need.
 */
static int
may_linger(const struct connection *connection, int status)
{
        const struct http_limits *limits = &connection->all->limits;
        uint64_t used, max;

        if (status == 503 || connection->held == 0 || limits->room == NULL)
                return status != 503;
        used = atomic_load(&limits->room->used);
        max = atomic_load(&limits->room->max);
        return used <= max / 2 && used + limits->max_body <= max;
}

void
connection_refuse(struct connection *connection, int status, const char *reason)
{
        struct connections *all = connection->all;
        int lingers = may_linger(connection, status);
        char id[17];

        if (connection->n_complete > 0) {
                connection->due = (struct head_fault){status, reason};
                return;
        }
        connections_next_id(all, id);
        connection_enter(connection, STAGE_REFUSED);
        connection->refused = 1;
        connection->end = HTTP_END_REFUSED;
        connection->refusal = refusal_new(connection->bev, status, reason, id, lingers);
        if (!lingers)
                give_room_back(connection, connection->held); /* it closes as soon as the answer is out */
        if (connection->refusal == NULL)
                shut(connection);
        if (all->callbacks->on_refused != NULL)
                all->callbacks->on_refused(status, &connection->client, id, all->arg);
}

/*
 * Most replies fit into the socket's buffer. They need not wait until the event loop has found out that it may be written to,
 * which costs more than the writing. What is left waits for that; what fails does so once more, and is seen to then. Returns
 * whether nothing is left: evhttp is told before the loop looks for events again.
 */
static int
write_at_once(struct connection *connection)
{
        struct evbuffer *output = bufferevent_get_output(connection->bev);

        (void)evbuffer_unfreeze(output, 1);
        (void)evbuffer_write(output, connection->fd);
        (void)evbuffer_freeze(output, 1);
        if (evbuffer_get_length(output) > 0)
                return 0;
        (void)bufferevent_disable(connection->bev, EV_WRITE);
        bufferevent_trigger(connection->bev, EV_WRITE, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
        return 1;
}

/*
 * The body has gone, whenever the answer is taken. evhttp, which read nothing while the request was handled, reads while it
 * writes, which nothing would bound. Where the answer is out and nothing came with the request it may: that spares
 * telling the kernel twice what is awaited.
 */
void
connection_replying(struct connection *connection)
{
        int is_out;

        connection_enter(connection, STAGE_REPLYING);
        give_room_back(connection, connection->held - connection->held_ahead);
        is_out = connection->all->tls == NULL && write_at_once(connection);
        if (!is_out || connection->n_complete > 1 || connection->due.status != 0)
                (void)bufferevent_disable(connection->bev, EV_READ);
}

/* Refuse what follows the last reply, once evhttp has got ready for it, but not a byte of it to evhttp. */
static void
refuse_rest(struct connection *connection)
{
        struct evbuffer *input = bufferevent_get_input(connection->bev);

        (void)evbuffer_drain(input, evbuffer_get_length(input));
        connection_enter(connection, STAGE_HANDLING);
        event_active(connection->timer, EV_READ, 1);
}

/* What comes after a reply: of pipelined requests the next, which evhttp begins with at once, or part of it. */
void
connection_replied(struct connection *connection)
{
        const struct framing *framing = &connection->framing;

        if (--connection->n_complete > 0) {
                connection_enter(connection, STAGE_HANDLING);
                event_active(connection->timer, EV_READ, 1); /* evhttp is about to read; see on_timer() */
                return;
        }
        if (connection->due.status != 0)
                refuse_rest(connection);
        else if (!framing_is_inside(framing))
                connection_enter(connection, STAGE_IDLE);
        else
                connection_enter(connection, framing->state == FRAMING_HEAD ? STAGE_HEAD : STAGE_BODY);
}

/* After a reply, once evhttp has got ready for what comes. */
static void
go_on(struct connection *connection)
{
        if (connection->n_complete > 0)
                (void)bufferevent_disable(connection->bev, EV_READ);
        else if (connection->due.status != 0 && !connection->refused)
                connection_refuse(connection, connection->due.status, connection->due.reason);
}

/* The deadline of the stage has passed. */
static void
expire(struct connection *connection)
{
        if (connection->stage == STAGE_HANDSHAKE) {
                tls_log_timeout(&connection->client);
                connection_break_off(connection, HTTP_END_HANDSHAKE_TIMEOUT);
        } else if (connection->stage == STAGE_ARRIVING || connection->stage == STAGE_IDLE ||
                   connection->stage == STAGE_REPLYING) {
                connection_break_off(connection,
                                     connection->stage == STAGE_IDLE ? HTTP_END_IDLE : HTTP_END_SLOW);
        } else if (connection->stage == STAGE_HEAD || connection->stage == STAGE_BODY) {
                connection_refuse(connection, 408, "the request came too slowly");
        }
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct connection *connection = arg;
        int64_t now_ms = clock_monotonic_ms();

        (void)fd;
        connection->armed_ms = 0;
        if (connection->evcon == NULL) {
                connection_enter(connection, connection->stage);
                entrance_attach(connection);
                return;
        }
        if (!(what & EV_READ) && connection->deadline_ms != 0 && connection->deadline_ms <= now_ms) {
                expire(connection); /* which may free it */
                return;
        }
        if (what & EV_READ)
                go_on(connection);
        if (connection->deadline_ms != 0 && connection->armed_ms == 0)
                arm(connection, now_ms);
}

void
connection_discard(struct connection *connection)
{
        if (connection->bev != NULL)
                bufferevent_free(connection->bev);
        if (connection->timer != NULL)
                event_free(connection->timer);
        free(connection);
}

struct connection *
connection_new(struct connections *all)
{
        const struct framing_limits framing_limits = {
            .max_header_bytes = all->limits.max_header_bytes,
            .max_headers = all->limits.max_headers,
            .max_body = all->limits.max_body,
        };
        struct connection *connection = calloc(1, sizeof(*connection));

        if (connection == NULL)
                return NULL;
        connection->all = all;
        connection->fd = -1;
        connection->stage = STAGE_ARRIVING;
        framing_init(&connection->framing, &framing_limits);
        connection->bev = session_new(connection);
        connection->timer = evtimer_new(all->base, on_timer, connection);
        if (connection->bev == NULL || connection->timer == NULL ||
            evbuffer_add_cb(bufferevent_get_input(connection->bev), tap_on_input, connection) == NULL) {
                connection_discard(connection);
                return NULL;
        }
        return connection;
}
