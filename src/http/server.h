#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/address.h"
#include "base/compiler.h"
#include "http/clients.h"
#include "http/connection_stats.h"
#include "http/memory_budget.h"
#include "http/tls.h"

/*
 * An HTTP server: evhttp behind a gate (gate.h), which reads connections strictly by RFC 9112, keeps limits and deadlines,
 * and answers what is refused. A server lives in one thread, its event base's; nothing here may be called from another one.
 */
struct http_server;

#define HTTP_LISTENERS_MAX 64

struct http_request;

struct http_limits {
        size_t
            max_header_bytes; /* request line and headers, up to HEAD_TEXT_MAX; and as many of chunk extensions and trailer fields */
        size_t max_headers;         /* header lines */
        uint64_t max_body;          /* bytes of a body */
        size_t max_connections;     /* of all servers with the same stats; without stats, of this server */
        size_t own_connections;     /* so many this server may have whatever others have; 0: none */
        uint64_t header_timeout_ms; /* from the first byte of a request to the end of its headers */
        uint64_t
            request_timeout_ms; /* from the first byte of a request to the end of its body; and to write an answer */
        uint64_t idle_timeout_ms;      /* between requests */
        uint64_t handshake_timeout_ms; /* of TLS, from the accept, or from the header of the PROXY protocol */
        uint64_t handling_timeout_ms;  /* from the end of a request to its answer */
        int requires_proxy; /* connections begin with the PROXY protocol; others than trusted proxies are closed */
        struct http_trust trust;        /* what it points at outlives the server */
        struct clients *clients;        /* limits for each address; outlives the server. NULL: none */
        struct memory_budget *budget;   /* for bodies; outlives the server. NULL: none */
        struct connection_stats *stats; /* counts connections; outlives the server. NULL: none */
};

/*
 * The steps of a request. on_head and on_complete may answer by http_reply_error(); then nothing more is called for it, and
 * evhttp never sees the request. Only on_request need be set.
 */
struct http_callbacks {
        /* The head has come. The body of a request that is answered here is discarded as it comes. */
        void (*on_head)(struct http_request *request, void *arg);

        /* The body has come as well. */
        void (*on_complete)(struct http_request *request, void *arg);

        /* evhttp hands the request over. The callee answers now or later, exactly once. */
        void (*on_request)(struct http_request *request, void *arg);

        /*
         * The gate has refused something by itself: status 400, 408, 413, 414, 417, 501 or 503, and the answer's x-request-id.
         * is_proxy: the client is not known, but only the trusted proxy before it.
         */
        void (*on_refused)(int status, const struct address *client, int is_proxy, const char *request_id,
                           void *arg);
};

/**
 * http_server_new(base, limits, tls, callbacks, arg):
 * A server without listeners. With tls, which outlives it, all its connections speak TLS; NULL: none. Returns NULL when memory
 * or descriptors fail.
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
 * Other limits, for connections and requests that come from now on; requests under way keep their deadlines. clients, budget
 * and stats must stay the same. Connections without a request are closed when there are too many.
 */
void http_server_set_limits(struct http_server *server, const struct http_limits *limits);

/* Number of open connections. */
size_t http_server_n_connections(const struct http_server *server);

/*
 * Close connections beyond the limits, and accept again after a pause for whose timer there was no memory. Call it every
 * second, and a few times a second where several servers share a limit: another server may have accepted a connection to
 * which it has a right while this one has more than its share.
 */
void http_server_keep_to_limits(struct http_server *server);

/* Leave new connections waiting, or accept them again. Before the base's loop runs, or from it. */
void http_server_hold(struct http_server *server, int on);

/* Accept no more connections; open connections close after their next answer. */
void http_server_stop_listening(struct http_server *server);

/* Close all connections. Every request must have been answered. NULL is harmless. */
void http_server_free(struct http_server *server);

#endif
