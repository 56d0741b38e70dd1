#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/address.h"
#include "base/compiler.h"
#include "http/census.h"
#include "http/clients.h"
#include "http/forwarded.h"
#include "http/room.h"
#include "http/tls.h"

/*
 * evhttp made safe: each connection's bytes are judged by framing.c before evhttp acts on them. A server lives in one
 * thread, its event base's; nothing here may be called from another one.
 */
struct http_server;

#define HTTP_LISTENERS_MAX 64

/* A request that has come completely and awaits its one reply. */
struct http_request;

struct http_limits {
        size_t
            max_header_bytes; /* request line and headers; and as many of chunk extensions and trailer fields */
        size_t max_headers;   /* header lines */
        uint64_t max_body;    /* bytes of a body */
        size_t max_connections;      /* of all servers with the same census; without one, of this server */
        size_t own_connections;      /* so many this server may have whatever others have; 0: none */
        uint64_t header_timeout_ms;  /* from the first byte of a request to the end of its headers */
        uint64_t request_timeout_ms; /* from the first byte of a request to the end of its body */
        uint64_t idle_timeout_ms;    /* between requests */
        /* From the accepting of a connection, or a proxy's word on it, to the end of its TLS handshake. */
        uint64_t handshake_timeout_ms;
        struct http_trust
            trust; /* proxies that say who the client is; what it points at outlives the server */
        struct clients *clients;    /* limits for each address; outlives the server. NULL: none */
        struct http_room *room;     /* for bodies; outlives the server. NULL: no bound but the others */
        struct http_census *census; /* counts its connections; outlives it. NULL: none */
};

struct http_callbacks {
        /* A request came. The callee replies now or later, exactly once, by http_reply() or envelope_reply(). */
        void (*on_request)(struct http_request *request, void *arg);

        /*
         * A body is larger than max_body. Returns the status that a check before that one gives (404, 405), or 413. May be
         * NULL: 413.
         */
        int (*on_oversize)(const char *method, const char *path, size_t path_len, void *arg);

        /*
         * A request was refused before on_request, with this status (400, 404, 405, 408, 413, 414, 417, 501, 503) and an
         * x-request-id, for counting. May be NULL.
         */
        void (*on_refused)(int status, const struct address *client, const char *request_id, void *arg);
};

/**
 * http_server_new(base, limits, tls, callbacks, arg):
 * A server without listeners. With tls, which outlives it, all its connections speak that; NULL: none. Returns NULL when
 * memory fails.
 */
struct http_server *http_server_new(struct event_base *base, const struct http_limits *limits,
                                    struct tls *tls, const struct http_callbacks *callbacks,
                                    void *arg) MUST_CHECK;

/**
 * http_server_listen(server, fd):
 * Accept connections from a listening non-blocking socket, which stays the caller's (several servers may accept from
 * the same); from HTTP_LISTENERS_MAX at most. Returns 0 or -1.
 */
int http_server_listen(struct http_server *server, int fd) MUST_CHECK;

/**
 * http_server_set_limits(server, limits):
 * Other limits, for connections and requests that come from now on; what is under way keeps its deadline. clients and room
 * must be those that were given at first. When there are more connections than there may be, those go that have no
 * request.
 */
void http_server_set_limits(struct http_server *server, const struct http_limits *limits);

/* How many connections are open. */
size_t http_server_n_connections(const struct http_server *server);

/*
 * Let connections go that are more than there may be, and accept again after a pause for whose timer there was no memory.
 * Another server may have accepted a connection to which it has a right while this one has more than its share: to be
 * called every second, and a few times a second where several share a limit.
 */
void http_server_keep_to_limits(struct http_server *server);

/* Leave connections that come waiting, or take them again. Before the base's loop runs, or from it. */
void http_server_hold(struct http_server *server, int on);

/* Accept no more connections; connections that are open close after their next reply. */
void http_server_stop_listening(struct http_server *server);

/* Close all connections. Every request must have been replied to. NULL is harmless. */
void http_server_free(struct http_server *server);

#endif
