#include "http/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <event2/buffer.h>
#include <openssl/rand.h>

#include "http/framing.h"
#include "http/refusal.h"

enum stage { STAGE_IDLE, STAGE_HEAD, STAGE_BODY, STAGE_HANDLING };

struct connection {
        TAILQ_ENTRY(connection) entry; /* in the list of those that are idle */
        struct connections *all;
        struct bufferevent *bev;         /* one reference is ours */
        struct evhttp_connection *evcon; /* NULL until evhttp has made it */
        struct event *timer;
        struct framing framing;
        struct refusal *refusal; /* answers it in evhttp's place; NULL also when memory failed for that */
        enum stage stage;
        int oversize_status; /* what a body that grows too large would be answered */
        evutil_socket_t fd;
        int refused; /* taken away from evhttp */
        int surplus; /* there is no room for it: to be closed as soon as evhttp has it */
};

struct connections {
        struct event_base *base;
        struct http_limits limits;
        const struct http_callbacks *callbacks;
        void *arg;
        struct connection *spare;               /* made ahead, for the next that is accepted */
        TAILQ_HEAD(idle_head, connection) idle; /* the one that has waited longest first */
        struct connection **by_fd;
        size_t by_fd_size;
        size_t n;
        uint64_t id_seed;
        uint64_t n_ids;
};

void
connections_next_id(struct connections *connections, char id[17])
{
        /* An odd factor visits every 64-bit number once. */
        uint64_t number = connections->id_seed + connections->n_ids++ * UINT64_C(0x9e3779b97f4a7c15);

        (void)snprintf(id, 17, "%016llx", (unsigned long long)number);
}

static void
set_deadline(struct connection *connection, uint64_t ms)
{
        const struct timeval in = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

        (void)evtimer_add(connection->timer, &in);
}

static void
enter_stage(struct connection *connection, enum stage stage)
{
        const struct http_limits *limits = &connection->all->limits;

        if (connection->stage == STAGE_IDLE && stage != STAGE_IDLE)
                TAILQ_REMOVE(&connection->all->idle, connection, entry);
        else if (connection->stage != STAGE_IDLE && stage == STAGE_IDLE)
                TAILQ_INSERT_TAIL(&connection->all->idle, connection, entry);
        if (stage == STAGE_IDLE)
                set_deadline(connection, limits->idle_timeout_ms);
        else if (stage == STAGE_HEAD)
                set_deadline(connection, limits->header_timeout_ms);
        else if (stage == STAGE_BODY)
                set_deadline(connection, limits->request_timeout_ms > limits->header_timeout_ms
                                             ? limits->request_timeout_ms - limits->header_timeout_ms
                                             : 1);
        else
                (void)evtimer_del(connection->timer);
        connection->stage = stage;
}

/* evhttp releases the connection. */
static void
on_close(struct evhttp_connection *evcon, void *arg)
{
        struct connection *connection = arg;
        struct connections *all = connection->all;

        (void)evcon;
        if (connection->stage == STAGE_IDLE)
                TAILQ_REMOVE(&all->idle, connection, entry);
        if (connection->fd >= 0 && (size_t)connection->fd < all->by_fd_size)
                all->by_fd[connection->fd] = NULL;
        all->n--;
        refusal_free(connection->refusal);
        framing_clear(&connection->framing);
        event_free(connection->timer);
        (void)bufferevent_decref(connection->bev);
        free(connection);
}

/* Let evhttp release the connection, as if the client had broken it. Not while a request of it is handled. */
static void
break_off(struct connection *connection)
{
        bufferevent_event_cb event_cb = NULL;
        void *arg = NULL;

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

/* Answer with an error and close. */
static void
refuse(struct connection *connection, int status, const char *reason)
{
        struct connections *all = connection->all;
        char id[17];

        connections_next_id(all, id);
        enter_stage(connection, STAGE_HANDLING);
        connection->refused = 1;
        connection->refusal = refusal_new(connection->bev, status, reason, id);
        if (connection->refusal == NULL)
                shut(connection);
        if (all->callbacks->on_refused != NULL)
                all->callbacks->on_refused(status, all->arg);
}

static int
oversize_status(const struct connection *connection)
{
        const struct connections *all = connection->all;
        const struct head *head = &connection->framing.head;

        if (all->callbacks->on_oversize == NULL)
                return 413;
        return all->callbacks->on_oversize(head->method, head->path, head->path_len, all->arg);
}

static void
refuse_by_framing(struct connection *connection)
{
        const struct framing *framing = &connection->framing;
        int status = framing->fault.status;

        if (status == 413)
                status = framing->state == FRAMING_HEAD ? oversize_status(connection)
                                                        : connection->oversize_status;
        refuse(connection, status, framing->fault.reason);
}

/* Feed new bytes to the framing. Returns 0 when the connection was refused. */
static int
judge(struct connection *connection, const char *data, size_t len)
{
        while (len > 0) {
                size_t used;

                if (connection->stage == STAGE_IDLE)
                        enter_stage(connection, STAGE_HEAD);
                switch (framing_feed(&connection->framing, data, len, &used)) {
                case FRAMING_MORE:
                        break;
                case FRAMING_BODY:
                        connection->oversize_status = oversize_status(connection);
                        enter_stage(connection, STAGE_BODY);
                        break;
                case FRAMING_MESSAGE:
                        enter_stage(connection, STAGE_HANDLING);
                        break;
                case FRAMING_REFUSED:
                        refuse_by_framing(connection);
                        return 0;
                }
                data += used;
                len -= used;
        }
        return 1;
}

/* Bytes have come in, and evhttp has not seen them yet. */
static void
on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
        struct connection *connection = arg;
        struct evbuffer_iovec pieces[16];
        struct evbuffer_ptr start;
        size_t left = info->n_added;

        if (left == 0 || connection->refused || connection->evcon == NULL)
                return;
        if (evbuffer_ptr_set(input, &start, info->orig_size, EVBUFFER_PTR_SET) != 0)
                return;
        while (left > 0) {
                int n = evbuffer_peek(input, (ev_ssize_t)left, &start, pieces, ARRAY_LEN(pieces));
                size_t seen = 0;

                n = n > (int)ARRAY_LEN(pieces) ? (int)ARRAY_LEN(pieces) : n;
                for (int i = 0; i < n && seen < left; i++) {
                        size_t len = pieces[i].iov_len < left - seen ? pieces[i].iov_len : left - seen;

                        if (!judge(connection, pieces[i].iov_base, len))
                                return;
                        seen += len;
                }
                if (seen == 0 || (left -= seen) == 0)
                        return;
                if (evbuffer_ptr_set(input, &start, seen, EVBUFFER_PTR_ADD) != 0)
                        return;
        }
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
        size_t fd;

        bufferevent_getcb(connection->bev, NULL, NULL, NULL, &evcon);
        connection->fd = bufferevent_getfd(connection->bev);
        fd = (size_t)connection->fd;
        if (evcon != NULL && connection->fd >= 0 && fd >= all->by_fd_size) {
                size_t size = fd + 256;
                struct connection **by_fd = reallocarray(all->by_fd, size, sizeof(struct connection *));

                if (by_fd != NULL) {
                        for (size_t i = all->by_fd_size; i < size; i++)
                                by_fd[i] = NULL;
                        all->by_fd = by_fd;
                        all->by_fd_size = size;
                } else {
                        connection->surplus = 1;
                }
        }
        if (evcon == NULL || connection->fd < 0) {
                on_close(NULL, connection);
                return;
        }
        connection->evcon = evcon;
        evhttp_connection_set_closecb(evcon, on_close, connection);
        if (fd < all->by_fd_size)
                all->by_fd[fd] = connection;
        if (connection->surplus)
                break_off(connection);
        else
                (void)bufferevent_enable(connection->bev, EV_READ);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct connection *connection = arg;

        (void)fd;
        (void)what;
        if (connection->evcon == NULL) {
                set_deadline(connection, connection->all->limits.idle_timeout_ms);
                attach(connection);
        } else if (connection->stage == STAGE_IDLE) {
                break_off(connection);
        } else if (connection->stage != STAGE_HANDLING) {
                refuse(connection, 408, "the request came too slowly");
        }
}

/* Make room for one more: the connection that has waited longest for a request goes. */
static void
make_room(struct connections *connections)
{
        struct connection *longest = TAILQ_FIRST(&connections->idle);

        if (longest != NULL && longest->evcon != NULL)
                break_off(longest);
}

/* A connection that nobody has yet goes. */
static void
discard(struct connection *connection)
{
        if (connection->bev != NULL)
                bufferevent_free(connection->bev);
        if (connection->timer != NULL)
                event_free(connection->timer);
        free(connection);
}

int
connections_prepare(struct connections *connections)
{
        struct connection *connection;

        if (connections->spare != NULL)
                return 0;
        connection = calloc(1, sizeof(*connection));
        if (connection == NULL)
                return -1;
        connection->all = connections;
        connection->fd = -1;
        connection->bev = bufferevent_socket_new(connections->base, -1, BEV_OPT_CLOSE_ON_FREE);
        connection->timer = evtimer_new(connections->base, on_timer, connection);
        if (connection->bev == NULL || connection->timer == NULL ||
            framing_init(&connection->framing, connections->limits.max_header_bytes,
                         connections->limits.max_body) != 0 ||
            evbuffer_add_cb(bufferevent_get_input(connection->bev), on_input, connection) == NULL) {
                discard(connection);
                return -1;
        }
        connections->spare = connection;
        return 0;
}

struct bufferevent *
connections_open(struct connections *connections)
{
        struct connection *connection = connections->spare;

        if (connection == NULL)
                return NULL;
        connections->spare = NULL;
        if (connections->n >= connections->limits.max_connections)
                make_room(connections);
        connection->surplus = connections->n >= connections->limits.max_connections;
        connections->n++;
        TAILQ_INSERT_TAIL(&connections->idle, connection, entry);
        bufferevent_incref(connection->bev);
        event_active(connection->timer, EV_TIMEOUT, 1); /* attach, once evhttp is done accepting */
        return connection->bev;
}

void
connections_replied(struct connections *connections, struct evhttp_connection *evcon)
{
        struct bufferevent *bev = evcon == NULL ? NULL : evhttp_connection_get_bufferevent(evcon);
        evutil_socket_t fd = bev == NULL ? -1 : bufferevent_getfd(bev);
        struct connection *connection;

        if (fd < 0 || (size_t)fd >= connections->by_fd_size)
                return;
        connection = connections->by_fd[fd];
        if (connection == NULL || connection->stage != STAGE_HANDLING || connection->refused)
                return;
        /* Of pipelined requests, the next may have come already. */
        enter_stage(connection, framing_is_inside(&connection->framing) ? STAGE_BODY : STAGE_IDLE);
}

struct connections *
connections_new(struct event_base *base, const struct http_limits *limits,
                const struct http_callbacks *callbacks, void *arg)
{
        struct connections *connections = calloc(1, sizeof(*connections));

        if (connections == NULL)
                return NULL;
        connections->base = base;
        connections->limits = *limits;
        connections->callbacks = callbacks;
        connections->arg = arg;
        TAILQ_INIT(&connections->idle);
        if (RAND_bytes((unsigned char *)&connections->id_seed, sizeof(connections->id_seed)) != 1) {
                free(connections);
                return NULL;
        }
        return connections;
}

void
connections_free(struct connections *connections)
{
        struct connection *connection;

        if (connections == NULL)
                return;
        /* evhttp has released its own; what is left was accepted too late to be attached. */
        while ((connection = TAILQ_FIRST(&connections->idle)) != NULL)
                on_close(NULL, connection);
        if (connections->spare != NULL)
                discard(connections->spare);
        free(connections->by_fd);
        free(connections);
}
