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
 * An HTTP server: evhttp behind a gate (gate.h). The gate parses connections strictly by RFC 9112, enforces
 * limits and deadlines, and answers refused requests. A server belongs to the thread of its event base; all
 * functions must be called from that thread.
 */
struct http_server;

#define HTTP_LISTENERS_MAX 64

struct http_request;

struct http_limits {
        /*
         * Bytes of a head, at most HEAD_TEXT_MAX; also the limit of all chunk extensions and trailer fields
         * together.
         */
        size_t max_header_bytes;
        size_t max_headers;     /* header lines */
        uint64_t max_body;      /* bytes of a body */
        size_t max_connections; /* of all servers that share stats; without stats, of this server */
        size_t own_connections; /* connections that this server may have even when others use up the limit */
        uint64_t header_timeout_ms; /* from the first byte of a request to the end of its headers */
        /* From the first byte of a request to the end of its body; also for the client to read an answer. */
        uint64_t request_timeout_ms;
        uint64_t idle_timeout_ms;      /* between requests */
        uint64_t handshake_timeout_ms; /* TLS: from the accept or the end of the PROXY protocol header */
        uint64_t handling_timeout_ms;  /* from the end of a request to its answer */
        int requires_proxy;            /* expect the PROXY protocol; close connections of untrusted peers */
        /* The following, and what trust points at, outlive the server. NULL: none. */
        struct http_trust trust;
        struct clients *clients;        /* limits for each address */
        struct memory_budget *budget;   /* memory for bodies */
        struct connection_stats *stats; /* counters of connections */
};

/* A request that the gate has refused by itself. */
struct http_refusal {
        int status;
        const char *reason;
        uint64_t content_length; /* for status 413; 0: a chunked body */
        struct address client;
        int is_proxy;           /* client is a trusted proxy; the address behind it is not known */
        const char *request_id; /* of the answer */
};

/*
 * The steps of a request, in this order. on_head and on_complete may answer by http_reply_error(); then no
 * further callback follows for the request, and evhttp never sees it. Only on_request must be set.
 */
struct http_callbacks {
        /* The head is complete. If this answers, the body is discarded as it is read. */
        void (*on_head)(struct http_request *request, void *arg);

        /* The body is complete. */
        void (*on_complete)(struct http_request *request, void *arg);

        /* evhttp hands over the request. The callee answers exactly once, now or later. */
        void (*on_request)(struct http_request *request, void *arg);

        /*
         * The gate has refused a request by itself, with status 400, 408, 413, 414, 417, 501 or 503.
         */
        void (*on_refused)(const struct http_refusal *refusal, void *arg);

        /*
         * A connection has ended: after the answer to its last request, or before one. reason is why its TLS
         * session failed, a constant; NULL if it did not, or if the client only closed it. For
         * HTTP_END_PROXY_HEADER, it names what came instead of the header.
         */
        void (*on_closed)(enum http_end end, int is_answered, const char *reason,
                          const struct address *client, void *arg);
};

/**
 * http_server_new(base, limits, tls, callbacks, arg):
 * Make a server without listeners. With tls, which outlives the server, all connections use TLS; NULL: plain
 * HTTP. Returns NULL when memory or descriptors fail.
 */
struct http_server *http_server_new(struct event_base *base, const struct http_limits *limits,
                                    struct tls *tls, const struct http_callbacks *callbacks,
                                    void *arg) MUST_CHECK;

/**
 * http_server_listen(server, fd):
 * Accept connections from a non-blocking listening socket, at most HTTP_LISTENERS_MAX of them. The caller
 * keeps the socket; several servers may accept from it. Returns 0 or -1.
 */
int http_server_listen(struct http_server *server, int fd) MUST_CHECK;

/**
 * http_server_set_limits(server, limits):
 * Apply other limits to new connections and requests; current requests keep their deadlines. clients, budget
 * and stats must not change. Connections without a request are closed when they exceed the limits.
 */
void http_server_set_limits(struct http_server *server, const struct http_limits *limits);

/* Return the number of open connections. */
size_t http_server_n_connections(const struct http_server *server);

/*
 * Close connections beyond the limits, and resume accepting if the timer for that could not be set for lack
 * of memory. Call it every second, or a few times a second when servers share a limit: another server may
 * have accepted a connection that it has a right to, while this one has more than its share.
 */
void http_server_keep_to_limits(struct http_server *server);

/*
 * Leave new connections in the backlog, or accept them again. Call it before the event loop runs, or from it.
 */
void http_server_hold(struct http_server *server, int on);

/* Stop accepting; open connections close after their next answer. */
void http_server_stop_listening(struct http_server *server);

/* Close all connections. All requests must have been answered. NULL is harmless. */
void http_server_free(struct http_server *server);

#endif
