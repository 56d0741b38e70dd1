#include "http/server.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/http.h>
#include <event2/listener.h>

#include "base/log_flood.h"
#include "http/connections.h"
#include "http/incoming.h"
#include "http/phrase.h"
#include "http/refusal.h"
#include "http/spare.h"

#define ALL_METHODS \
        (EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | \
         EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_PATCH)

/* Accepting fails when descriptors or memory run out; trying again at once would only spin. */
#define ACCEPT_PAUSE_US 100000

struct http_server {
        LIST_ENTRY(http_server) entry; /* in the list of all */
        struct event_base *base;
        struct evhttp *evhttp;
        struct connections *connections;
        struct http_callbacks callbacks;
        void *arg;
        struct evconnlistener *listeners[HTTP_LISTENERS_MAX];
        size_t n_listeners;
        struct event *resume;
        int spare; /* a descriptor */
        int speaks_tls;
        struct http_census *census; /* NULL: none */
        int stopping;
        int is_stuck; /* accepting rests, and there was no memory for the timer that ends that */
};

static void
on_evhttp_request(struct evhttp_request *evreq, void *arg)
{
        struct http_server *server = arg;
        struct evhttp_connection *evcon = evhttp_request_get_connection(evreq);
        struct http_request *request = incoming_new(evreq, server->connections, &server->stopping);

        if (request != NULL) {
                server->callbacks.on_request(request, server->arg);
                return;
        }
        evhttp_send_reply(evreq, HTTP_SERVUNAVAIL, phrase_for(HTTP_SERVUNAVAIL), NULL);
        connections_replying(server->connections, evcon);
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

/* For a connection of whose request nothing is known. NULL when memory fails. To be freed. */
static char *
turned_away(struct http_server *server)
{
        char id[17];
        size_t len;

        connections_next_id(server->connections, id);
        return refusal_answer(503, "too many connections; send it again", id, &len);
}

/*
 * A connection waits and cannot be accepted. When descriptors have run out, an idle connection makes room for it; where none
 * is idle, it is turned away, and accepting rests for a moment.
 */
static void
cope(struct http_server *server, int listener, int error)
{
        int is_short = error == EMFILE || error == ENFILE;

        if (is_short && connections_make_room(server->connections))
                return;
        if (is_short) {
                char *answer = server->speaks_tls ? NULL : turned_away(server);

                server->spare = spare_turn_away(server->spare, listener, answer);
                free(answer);
                http_census_accepted(server->census);
                http_census_ended(server->census, HTTP_END_NO_DESCRIPTORS);
        }
        pause_accepting(server);
}

/* What arg is, is evhttp's own affair: it has taken the listener over. So the server is found by its event base. */
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
        log_accept_error(error);
        pthread_mutex_lock(&servers_mutex);
        LIST_FOREACH(server, &servers, entry)
        {
                if (server->base == evconnlistener_get_base(listener))
                        cope(server, evconnlistener_get_fd(listener), error);
        }
        pthread_mutex_unlock(&servers_mutex);
}

/* The descriptor of a connection that makes room is free only after this pass of the event loop: so is the next accepted. */
static void
take_turns(struct http_server *server)
{
        enable_listeners(server, 0);
        event_active(server->resume, EV_TIMEOUT, 1);
}

static struct bufferevent *
open_connection(struct event_base *base, void *arg)
{
        struct http_server *server = arg;
        struct bufferevent *bev = connections_open(server->connections);

        (void)base;
        if (connections_prepare(server->connections) != 0)
                pause_accepting(server);
        else if (connections_are_full(server->connections))
                take_turns(server);
        return bev;
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
        struct http_server *server = arg;

        (void)fd;
        (void)what;
        server->is_stuck = 0;
        if (server->stopping)
                return;
        if (connections_prepare(server->connections) == 0)
                enable_listeners(server, 1);
        else
                pause_accepting(server);
}

/* evhttp's own limits stand behind those of framing.c and the stages', which answer better. */
static void
set_timeout(struct http_server *server, const struct http_limits *limits)
{
        uint64_t longest_ms = limits->idle_timeout_ms;

        if (limits->request_timeout_ms > longest_ms)
                longest_ms = limits->request_timeout_ms;
        evhttp_set_timeout(server->evhttp, (int)(longest_ms / 1000) + 10);
}

static void
configure(struct http_server *server, const struct http_limits *limits)
{
        evhttp_set_bevcb(server->evhttp, open_connection, server);
        evhttp_set_gencb(server->evhttp, on_evhttp_request, server);
        evhttp_set_allowed_methods(server->evhttp, ALL_METHODS);
        evhttp_set_default_content_type(server->evhttp, NULL);
        evhttp_set_max_headers_size(server->evhttp, (ev_ssize_t)limits->max_header_bytes);
        evhttp_set_max_body_size(server->evhttp, (ev_ssize_t)limits->max_body);
        set_timeout(server, limits);
}

struct http_server *
http_server_new(struct event_base *base, const struct http_limits *limits, struct tls *tls,
                const struct http_callbacks *callbacks, void *arg)
{
        struct http_server *server = calloc(1, sizeof(*server));

        if (server == NULL)
                return NULL;
        server->base = base;
        server->spare = spare_open();
        server->speaks_tls = tls != NULL;
        server->census = limits->census;
        server->callbacks = *callbacks;
        server->arg = arg;
        pthread_mutex_lock(&servers_mutex);
        LIST_INSERT_HEAD(&servers, server, entry);
        pthread_mutex_unlock(&servers_mutex);
        server->evhttp = evhttp_new(base);
        server->resume = evtimer_new(base, on_resume, server);
        server->connections = connections_new(base, limits, tls, &server->callbacks, arg);
        if (server->evhttp == NULL || server->resume == NULL || server->connections == NULL ||
            connections_prepare(server->connections) != 0) {
                http_server_free(server);
                return NULL;
        }
        configure(server, limits);
        return server;
}

void
http_server_set_limits(struct http_server *server, const struct http_limits *limits)
{
        connections_set_limits(server->connections, limits);
        set_timeout(server, limits);
}

size_t
http_server_n_connections(const struct http_server *server)
{
        return connections_count(server->connections);
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
        server->stopping = 1;
        enable_listeners(server, 0);
}

void
http_server_free(struct http_server *server)
{
        if (server == NULL)
                return;
        if (server->evhttp != NULL)
                evhttp_free(server->evhttp); /* its listeners and connections with it */
        if (server->resume != NULL)
                event_free(server->resume);
        connections_free(server->connections);
        spare_close(server->spare);
        pthread_mutex_lock(&servers_mutex);
        LIST_REMOVE(server, entry);
        pthread_mutex_unlock(&servers_mutex);
        free(server);
}
