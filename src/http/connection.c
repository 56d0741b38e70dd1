#include "http/connection.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <openssl/err.h>

#include <event2/bufferevent_ssl.h>
#include <event2/event.h>

#include "base/log.h"
#include "http/connections.h"
#include "http/tap.h"

static void
set_deadline(struct connection *connection, uint64_t ms)
{
        const struct timeval in = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

        (void)evtimer_add(connection->timer, &in);
}

/* The list of those that are in the same stage; NULL for most stages. */
static struct connection_list *
list_of(struct connections *all, enum stage stage)
{
        if (stage == STAGE_ARRIVING || stage == STAGE_HANDSHAKE || stage == STAGE_IDLE)
                return &all->waiting;
        if (stage == STAGE_HEAD)
                return &all->heads;
        return stage == STAGE_BODY ? &all->bodies : NULL;
}

static void
leave_list(struct connection *connection)
{
        struct connection_list *list = list_of(connection->all, connection->stage);

        if (list != NULL)
                TAILQ_REMOVE(list, connection, entry);
}

/* In milliseconds; 0: none. */
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
                return limits->request_timeout_ms > limits->header_timeout_ms
                           ? limits->request_timeout_ms - limits->header_timeout_ms
                           : 1;
        case STAGE_REPLYING:
                return limits->request_timeout_ms;
        case STAGE_HANDLING:
                break;
        }
        return 0;
}

void
connection_enter(struct connection *connection, enum stage stage)
{
        struct connection_list *list = list_of(connection->all, stage);
        uint64_t deadline_ms = deadline_of(&connection->all->limits, stage);

        leave_list(connection);
        connection->stage = stage;
        if (list != NULL)
                TAILQ_INSERT_TAIL(list, connection, entry);
        if (deadline_ms > 0)
                set_deadline(connection, deadline_ms);
        else
                (void)evtimer_del(connection->timer);
}

static void
give_room_back(struct connection *connection, uint64_t bytes)
{
        connection->held -= bytes;
        if (connection->all->limits.room != NULL)
                (void)atomic_fetch_sub(&connection->all->limits.room->used, bytes);
}

/* The bufferevent has the descriptor again, to read from it or to close it. */
static void
stop_arrival(struct connection *connection)
{
        if (connection->arrival == NULL)
                return;
        arrival_free(connection->arrival);
        connection->arrival = NULL;
        (void)bufferevent_setfd(connection->bev, connection->fd);
}

void
connection_free(struct connection *connection)
{
        struct connections *all = connection->all;

        leave_list(connection);
        stop_arrival(connection);
        if (connection->counted)
                clients_disconnect(all->limits.clients, &connection->client);
        give_room_back(connection, connection->held);
        if (connection->fd >= 0 && (size_t)connection->fd < all->by_fd_size)
                all->by_fd[connection->fd] = NULL;
        all->n--;
        refusal_free(connection->refusal);
        framing_clear(&connection->framing);
        event_free(connection->timer);
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

/* What OpenSSL said last of a connection that failed; 0: nothing. */
static unsigned long
take_error(struct bufferevent *bev)
{
        unsigned long code, last = 0;

        while ((code = bufferevent_get_openssl_error(bev)) != 0) {
                if (last == 0 && ERR_GET_LIB(code) != 0)
                        last = code;
        }
        return last;
}

/* Before the socket is shut. After a failure there is nothing more to say. */
static void
end_session(const struct connection *connection)
{
        SSL *session = bufferevent_openssl_get_ssl(connection->bev);
        unsigned long code;

        if (session == NULL || connection->stage == STAGE_ARRIVING)
                return;
        code = take_error(connection->bev);
        if (!connection->broken_off)
                tls_log_end(session, connection->stage == STAGE_HANDSHAKE, code);
        if (code == 0)
                tls_say_goodbye(session);
}

/* evhttp releases the connection. */
static void
on_close(struct evhttp_connection *evcon, void *arg)
{
        struct connection *connection = arg;

        (void)evcon;
        end_session(connection);
        connection_free(connection);
}

void
connection_break_off(struct connection *connection)
{
        bufferevent_event_cb event_cb = NULL;
        void *arg = NULL;

        connection->broken_off = 1;
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

void
connection_refuse(struct connection *connection, int status, const char *reason)
{
        struct connections *all = connection->all;
        char id[17];

        connections_next_id(all, id);
        connection_enter(connection, STAGE_HANDLING);
        connection->refused = 1;
        connection->refusal = refusal_new(connection->bev, status, reason, id);
        if (status == 503)
                give_room_back(connection, connection->held); /* it closes as soon as the answer is out */
        if (connection->refusal == NULL)
                shut(connection);
        if (all->callbacks->on_refused != NULL)
                all->callbacks->on_refused(status, &connection->client, all->arg);
}

static void
log_too_many(const struct address *client)
{
        static struct log_flood flood = LOG_FLOOD_INIT;
        char text[ADDRESS_TEXT_SIZE];
        uint64_t n;

        if (log_flood_pass(&flood, &n))
                log_notice("connections beyond max_connections_per_address were closed n=%" PRIu64
                           " last_client=%s",
                           n, address_format(client, text));
}

/* The client is known: requests may come. A proxy that does not tell its clients has no limit of its own. */
static void
begin(struct connection *connection)
{
        const struct http_limits *limits = &connection->all->limits;

        if (limits->clients != NULL && !forwarded_trusts(&limits->trust, &connection->client)) {
                if (clients_connect(limits->clients, &connection->client) != 0) {
                        log_too_many(&connection->client);
                        connection_break_off(connection);
                        return;
                }
                connection->counted = 1;
        }
        connection_enter(connection, connection->all->tls == NULL ? STAGE_IDLE : STAGE_HANDSHAKE);
        (void)bufferevent_enable(connection->bev, EV_READ);
}

static void
on_arrived(const struct address *client, int failed, void *arg)
{
        struct connection *connection = arg;

        connection->arrival = NULL;
        (void)bufferevent_setfd(connection->bev, connection->fd);
        if (client != NULL)
                connection->client = *client;
        if (failed)
                connection_break_off(connection);
        else
                begin(connection);
}

/* A trusted proxy may say first who the client is. */
static void
await_arrival(struct connection *connection)
{
        connection_enter(connection, STAGE_ARRIVING);
        connection->arrival = arrival_new(connection->all->base, connection->fd, on_arrived, connection);
        if (connection->arrival == NULL)
                connection_break_off(connection);
        else
                (void)bufferevent_setfd(connection->bev, -1);
}

static struct address
peer_of(evutil_socket_t fd)
{
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof(from);
        struct address peer;

        (void)getpeername(fd, (struct sockaddr *)&from, &len);
        address_from_socket((const struct sockaddr *)&from, &peer);
        return peer;
}

/*
 * evhttp has made its side of the connection: its argument on the bufferevent is the evhttp_connection, whose close
 * callback tells when it goes. If it failed to, the bufferevent has been given up and only our reference is left.
 */
static void
attach(struct connection *connection)
{
        struct connections *all = connection->all;
        void *evcon = NULL;

        bufferevent_getcb(connection->bev, NULL, NULL, NULL, &evcon);
        connection->fd = bufferevent_getfd(connection->bev);
        if (evcon == NULL || connection->fd < 0) {
                connection_free(connection);
                return;
        }
        connection->evcon = evcon;
        evhttp_connection_set_closecb(evcon, on_close, connection);
        connection->client = peer_of(connection->fd);
        if (connections_keep(all, connection) != 0 || connections_admit(all, connection) != 0)
                connection_break_off(connection);
        else if (forwarded_trusts(&all->limits.trust, &connection->client))
                await_arrival(connection);
        else
                begin(connection);
}

/* evhttp reads while it writes, which nothing would bound. */
void
connection_replying(struct connection *connection)
{
        connection_enter(connection, STAGE_REPLYING);
        (void)bufferevent_disable(connection->bev, EV_READ);
}

/* What comes after a reply: of pipelined requests the next, which evhttp begins with at once, or part of it. */
void
connection_replied(struct connection *connection)
{
        const struct framing *framing = &connection->framing;

        connection->n_complete--;
        if (connection->n_complete == 0)
                give_room_back(connection, connection->held - connection->held_ahead);
        if (connection->n_complete > 0)
                connection_enter(connection, STAGE_HANDLING);
        else if (!framing_is_inside(framing))
                connection_enter(connection, STAGE_IDLE);
        else
                connection_enter(connection, framing->state == FRAMING_HEAD ? STAGE_HEAD : STAGE_BODY);
        if (connection->n_complete > 0) {
                event_active(connection->timer, EV_READ, 1); /* evhttp is about to read; see on_timer() */
        }
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct connection *connection = arg;

        (void)fd;
        if (what & EV_READ) {
                if (connection->n_complete > 0)
                        (void)bufferevent_disable(connection->bev, EV_READ);
        } else if (connection->evcon == NULL) {
                connection_enter(connection, connection->stage);
                attach(connection);
        } else if (connection->stage == STAGE_HANDSHAKE) {
                tls_log_timeout();
                connection_break_off(connection);
        } else if (connection->stage == STAGE_ARRIVING || connection->stage == STAGE_IDLE ||
                   connection->stage == STAGE_REPLYING) {
                connection_break_off(connection);
        } else if (connection->stage != STAGE_HANDLING) {
                connection_refuse(connection, 408, "the request came too slowly");
        }
}

void
connection_accept(struct connection *connection)
{
        struct connections *all = connection->all;

        all->n++;
        connection->stage = STAGE_ARRIVING;
        TAILQ_INSERT_TAIL(&all->waiting, connection, entry);
        bufferevent_incref(connection->bev);
        event_active(connection->timer, EV_TIMEOUT, 1); /* attach, once evhttp is done accepting */
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

int
connection_is_current(const struct connection *connection)
{
        return tls_is_current(connection->all->tls, bufferevent_openssl_get_ssl(connection->bev));
}

/* The handshake is done; an info callback of OpenSSL's. */
static void
on_progress(const SSL *session, int where, int value)
{
        struct connection *connection = SSL_get_app_data(session);

        (void)value;
        if ((where & SSL_CB_HANDSHAKE_DONE) && connection->stage == STAGE_HANDSHAKE)
                connection_enter(connection, STAGE_IDLE);
}

/* evhttp gives it the descriptor. Returns NULL when memory fails. */
static struct bufferevent *
new_bufferevent(struct connection *connection)
{
        struct connections *all = connection->all;
        SSL *session;

        if (all->tls == NULL)
                return bufferevent_socket_new(all->base, -1, BEV_OPT_CLOSE_ON_FREE);
        session = tls_session(all->tls);
        if (session == NULL)
                return NULL;
        SSL_set_app_data(session, connection);
        SSL_set_info_callback(session, on_progress);
        /* It also frees a session that it cannot take. */
        return bufferevent_openssl_socket_new(all->base, -1, session, BUFFEREVENT_SSL_ACCEPTING,
                                              BEV_OPT_CLOSE_ON_FREE);
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
        connection->bev = new_bufferevent(connection);
        connection->timer = evtimer_new(all->base, on_timer, connection);
        if (connection->bev == NULL || connection->timer == NULL ||
            evbuffer_add_cb(bufferevent_get_input(connection->bev), tap_on_input, connection) == NULL) {
                connection_discard(connection);
                return NULL;
        }
        return connection;
}
