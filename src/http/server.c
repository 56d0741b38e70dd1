#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/http.h>
#include <event2/listener.h>

#include "base/log_flood.h"
#include "base/pool.h"
#include "http/connections.h"
#include "http/request_state.h"

/* Accepting fails when descriptors or memory run out; trying again at once would only spin. */
#define ACCEPT_PAUSE_US 100000
#define EVICT_INTERVAL_US 100000

struct http_server {
        LIST_ENTRY(http_server) entry; /* in the list of all */
        struct event_base *base;
        struct evhttp *evhttp;
        struct connections *connections;
        struct evconnlistener *listeners[HTTP_LISTENERS_MAX];
        size_t n_listeners;
        struct event *resume;
        struct event *wake;  /* the memory budget has granted memory, or a body waits for it */
        struct event *evict; /* evicts slow bodies while others wait for memory */
        int reserve;         /* a descriptor, see open_reserve() */
        int is_stuck;        /* accepting is paused, and the timer to resume it could not be set */
};

/* evhttp has read the request that the gate wrote to a letter box. */
static void
on_evhttp_request(struct evhttp_request *evreq, void *arg)
{
        struct connections *all = ((struct http_server *)arg)->connections;
        struct http_request *request = all->delivered;

        if (request == NULL) { /* the connection is closing because memory has failed */
                evhttp_send_reply(evreq, 503, NULL, NULL);
                return;
        }
        all->delivered = NULL;
        request->evreq = evreq;
        all->callbacks.on_request(request, all->arg);
}

/*
 * Open a descriptor to hold in reserve. When descriptors run out, the server uses it to accept a connection,
 * answer 503 and close; otherwise the client would wait in the backlog.
 */
static int
open_reserve(void)
{
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
close_reserve(int reserve)
{
        if (reserve >= 0)
                (void)close(reserve);
}

/* Write the answer, if any, to a connection that was accepted with the reserved descriptor, and close it. */
static void
close_rejected(int fd, const char *answer, size_t len)
{
        char sink[4096];

        if (answer != NULL) {
                (void)send(fd, answer, len, MSG_NOSIGNAL);
                (void)shutdown(fd, SHUT_WR);
                (void)recv(fd, sink, sizeof(sink), 0); /* unread bytes would make the close a reset */
        }
        (void)close(fd);
}

/* All servers of the process, for on_accept_error() to find its own. */
static LIST_HEAD(servers, http_server) servers = LIST_HEAD_INITIALIZER(servers);
static pthread_mutex_t servers_mutex = PTHREAD_MUTEX_INITIALIZER;

static void
enable_listeners(struct http_server *server, int on)
{
        for (size_t i = 0; i < server->n_listeners; i++) {
                if (on)
                        (void)evconnlistener_enable(server->listeners[i]);
                else
                        (void)evconnlistener_disable(server->listeners[i]);
        }
}

static void
pause_accepting(struct http_server *server)
{
        const struct timeval pause = {0, ACCEPT_PAUSE_US};

        enable_listeners(server, 0);
        server->is_stuck = evtimer_add(server->resume, &pause) != 0;
}

static void
log_accept_error(int error)
{
        static struct log_flood flood;

        log_flood(&flood, LOG_LEVEL_WARNING, "connections cannot be accepted reason=\"%s\"", strerror(error));
}

/* Make the answer to a rejected connection, from the pool. Returns NULL when memory fails. */
static char *
rejection(struct http_server *server, size_t *len)
{
        const struct http_error error = answer_refusal(503, "too many connections; send it again");
        char id[ANSWER_ID_SIZE];

        connections_next_id(server->connections, id);
        return answer_error(&error, id, ANSWER_CLOSES, 0, len);
}

/* Accept a connection with the reserved descriptor, answer 503 and close. */
static void
reject(struct http_server *server, int listener)
{
        struct connection_stats *stats = server->connections->limits.stats;
        int fd = -1;

        if (server->reserve >= 0) {
                (void)close(server->reserve);
                fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        }
        if (fd >= 0) {
                size_t len = 0;
                char *answer = server->connections->tls != NULL ? NULL : rejection(server, &len);

                close_rejected(fd, answer, len);
                pool_free(answer);
                connection_stats_accepted(stats);
                connection_stats_ended(stats, HTTP_END_NO_DESCRIPTORS);
        }
        server->reserve = open_reserve();
}

static int
is_out_of_descriptors(int error)
{
        return error == EMFILE || error == ENFILE;
}

/*
 * Linux allocates a descriptor before it looks at the backlog: accept() fails with EMFILE even if that is
 * empty.
 */
static int
is_backlog_empty(int listener)
{
        struct pollfd poll_fd = {.fd = listener, .events = POLLIN};

        return poll(&poll_fd, 1, 0) == 0;
}

/*
 * accept() has failed. When descriptors have run out, close an idle connection; if none is idle, reject the
 * new one. Otherwise pause accepting.
 */
static void
handle_accept_error(struct http_server *server, int listener, int error)
{
        if (is_out_of_descriptors(error) && connections_make_room(server->connections))
                return;
        if (is_out_of_descriptors(error))
                reject(server, listener);
        pause_accepting(server);
}

/* evhttp has replaced arg by a pointer of its own, so find the server by its event base. */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
        struct http_server *server;
        int error = errno;

        (void)arg;
        if (error == EINVAL) { /* the socket was shut down; see listener_is_shut_down() */
                (void)evconnlistener_disable(listener);
                return;
        }
        if (is_out_of_descriptors(error) && is_backlog_empty(evconnlistener_get_fd(listener)))
                return;
        log_accept_error(error);
        pthread_mutex_lock(&servers_mutex);
        LIST_FOREACH(server, &servers, entry)
        {
                if (server->base == evconnlistener_get_base(listener))
                        handle_accept_error(server, evconnlistener_get_fd(listener), error);
        }
        pthread_mutex_unlock(&servers_mutex);
}

/* A connection that was closed for another releases its descriptor only after this pass of the event loop. */
static void
accept_later(struct http_server *server)
{
        enable_listeners(server, 0);
        event_active(server->resume, EV_TIMEOUT, 1);
}

static struct bufferevent *
on_accept(struct event_base *base, void *arg)
{
        struct http_server *server = arg;
        struct bufferevent *letter_box = connections_accept(server->connections);

        (void)base;
        if (connections_prepare(server->connections) != 0)
                pause_accepting(server);
        else if (connections_are_full(server->connections))
                accept_later(server);
        return letter_box;
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
        struct http_server *server = arg;

        (void)fd;
        (void)what;
        server->is_stuck = 0;
        if (server->connections->is_stopping)
                return;
        if (connections_prepare(server->connections) == 0)
                enable_listeners(server, 1);
        else
                pause_accepting(server);
}

static void
on_evict(evutil_socket_t fd, short what, void *arg)
{
        struct http_server *server = arg;
        const struct timeval soon = {0, EVICT_INTERVAL_US};

        (void)fd;
        (void)what;
        if (connections_evict_slow(server->connections))
                (void)evtimer_add(server->evict, &soon);
}

/* The memory budget has granted memory, or a body has begun to wait for it. */
static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
        struct http_server *server = arg;
        eventfd_t ignored;

        (void)eventfd_read(fd, &ignored);
        connections_serve_waiting(server->connections);
        if (!evtimer_pending(server->evict, NULL))
                on_evict(-1, what, server);
}

/* Returns 0, or -1 when memory fails. */
static int
watch_budget(struct http_server *server)
{
        int fd = server->connections->wake_fd;

        if (fd < 0)
                return 0;
        server->wake = event_new(server->base, fd, EV_READ | EV_PERSIST, on_wake, server);
        server->evict = evtimer_new(server->base, on_evict, server);
        return server->wake != NULL && server->evict != NULL && event_add(server->wake, NULL) == 0 ? 0 : -1;
}

struct http_server *
http_server_new(struct event_base *base, const struct http_limits *limits, struct tls *tls,
                const struct http_callbacks *callbacks, void *arg)
{
        struct http_server *server = calloc(1, sizeof(*server));

        if (server == NULL)
                return NULL;
        server->base = base;
        server->reserve = open_reserve();
        pthread_mutex_lock(&servers_mutex);
        LIST_INSERT_HEAD(&servers, server, entry);
        pthread_mutex_unlock(&servers_mutex);
        server->evhttp = evhttp_new(base);
        server->resume = evtimer_new(base, on_resume, server);
        server->connections = connections_new(base, limits, tls, callbacks, arg);
        if (server->evhttp == NULL || server->resume == NULL || server->connections == NULL ||
            watch_budget(server) != 0 || connections_prepare(server->connections) != 0) {
                http_server_free(server);
                return NULL;
        }
        evhttp_set_bevcb(server->evhttp, on_accept, server);
        evhttp_set_gencb(server->evhttp, on_evhttp_request, server);
        evhttp_set_default_content_type(server->evhttp, NULL);
        return server;
}

void
http_server_set_limits(struct http_server *server, const struct http_limits *limits)
{
        connections_set_limits(server->connections, limits);
}

size_t
http_server_n_connections(const struct http_server *server)
{
        return server->connections->n;
}

int
http_server_listen(struct http_server *server, int fd)
{
        struct evconnlistener *listener;
        int own = dup(fd);

        if (own < 0)
                return -1;
        listener = evconnlistener_new(server->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
                                      0, own);
        if (listener == NULL) {
                (void)close(own);
                return -1;
        }
        if (server->n_listeners == HTTP_LISTENERS_MAX ||
            evhttp_bind_listener(server->evhttp, listener) == NULL) {
                evconnlistener_free(listener);
                return -1;
        }
        evconnlistener_set_error_cb(listener, on_accept_error);
        server->listeners[server->n_listeners++] = listener;
        return 0;
}

void
http_server_keep_to_limits(struct http_server *server)
{
        connections_keep_to_limits(server->connections);
        if (server->is_stuck)
                on_resume(-1, EV_TIMEOUT, server);
}

void
http_server_hold(struct http_server *server, int on)
{
        enable_listeners(server, !on);
}

void
http_server_stop_listening(struct http_server *server)
{
        server->connections->is_stopping = 1;
        enable_listeners(server, 0);
}

void
http_server_free(struct http_server *server)
{
        if (server == NULL)
                return;
        connections_free(server->connections); /* before evhttp, which would shut down the sockets */
        if (server->evhttp != NULL)
                evhttp_free(server->evhttp); /* frees the listeners, too */
        if (server->resume != NULL)
                event_free(server->resume);
        if (server->wake != NULL)
                event_free(server->wake);
        if (server->evict != NULL)
                event_free(server->evict);
        close_reserve(server->reserve);
        pthread_mutex_lock(&servers_mutex);
        LIST_REMOVE(server, entry);
        pthread_mutex_unlock(&servers_mutex);
        free(server);
}
