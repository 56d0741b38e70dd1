#ifndef HTTP_GATE_H
#define HTTP_GATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>

#include "base/address.h"
#include "base/compiler.h"
#include "http/framing.h"
#include "http/memory_budget.h"
#include "http/proxy_protocol.h"
#include "http/request.h"
#include "http/server.h"
#include "http/stream.h"

/*
 * The gate in front of evhttp: one connection, from accept to close. Private to http/.
 *
 * The gate owns the socket. evhttp gets a letter box instead of a connection: a socket bufferevent whose
 * descriptor the gate removes after the accept. The gate writes each genuine request to the letter box as
 * "GET / HTTP/1.1"; evhttp calls the handler, and the gate copies evhttp's answer from the letter box to the
 * socket. The gate answers all other requests itself; evhttp never sees them.
 *
 *   ACCEPTED --> PROXY, if required --> HANDSHAKE, with TLS --> IDLE
 *
 *   IDLE -first byte-> HEAD -empty line-> BODY -last byte-> HANDLING -answer-> REPLYING -sent-> IDLE
 *                                         |  ^                                    `-closes-> LINGERING
 *                                         v  |
 *                                        WAITING, for memory
 *
 *   any state --refused: an answer that closes--> REPLYING --> LINGERING
 *   any state --gate_end()--> ENDED --from the event loop--> freed
 *
 * Each state has an absolute deadline:
 *
 *   ACCEPTED, PROXY, HEAD  header_timeout      BODY       request_timeout, from the head's first byte
 *   HANDSHAKE              handshake_timeout   WAITING    MEMORY_WAIT_MS
 *   IDLE                   idle_timeout        HANDLING   handling_timeout
 *   REPLYING               request_timeout     LINGERING  LINGER_MS
 *
 * Ownership: the connection owns the stream, and the stream owns the descriptor. evhttp owns the letter box;
 * the connection holds a reference to it.
 *
 * Order of closing: gate_end() stops the stream's callbacks, removes the connection from all counts and
 * releases its memory. connection_free() follows from the event loop, never from a callback of the
 * connection. It first makes evhttp free its side, which calls shutdown() with the descriptor's number, and
 * then closes the stream. A request that is being handled outlives its connection; its answer is dropped.
 */
enum gate_state {
        GATE_ACCEPTED, /* evhttp has not set up its side yet */
        GATE_PROXY,    /* reading the PROXY protocol header */
        GATE_HANDSHAKE,
        GATE_IDLE,
        GATE_HEAD,
        GATE_BODY,
        GATE_WAITING,
        GATE_HANDLING,
        GATE_REPLYING,
        /* discarding input, so that the client sees the answer, not a reset (RFC 9112 §9.6) */
        GATE_LINGERING,
        GATE_ENDED,
        GATE_N_STATES
};

struct connection {
        TAILQ_ENTRY(connection) entry; /* connections.lists[state] */
        TAILQ_ENTRY(connection) turn;  /* connections.queue */
        struct connections *all;
        struct bufferevent *letter_box;
        struct stream stream;
        struct event timer; /* the deadline; also made active to continue from the event loop */
        struct proxy_header *proxy_header; /* only in GATE_PROXY */
        /* Bytes read and not parsed yet; they lie in `kept` or in connections.buffer. */
        const char *input;
        size_t input_len;
        char *kept; /* input kept until the next pass of the event loop, from the pool; or NULL */
        struct framing framing;
        struct http_request *request; /* from the end of its head until its answer; else NULL */
        struct address client; /* the peer, or the client that a trusted proxy named by the PROXY protocol */
        enum gate_state state;
        enum http_end end; /* reported when the client closes the connection */
        /* Monotonic: when the state was entered; in GATE_BODY and GATE_WAITING, when the request began. */
        int64_t since_ms;
        int64_t deadline_ms;  /* monotonic */
        int64_t armed_ms;     /* when the timer fires, not after deadline_ms; 0: not set */
        uint64_t n_lingered;  /* bytes discarded in GATE_LINGERING */
        uint8_t is_unix;      /* the peer is connected through a Unix-domain socket */
        uint8_t is_queued;    /* in connections.queue */
        uint8_t has_asked;    /* has sent a complete request */
        uint8_t was_genuine;  /* has sent a request that went to evhttp */
        uint8_t is_counted;   /* counts towards max_connections_per_address */
        uint8_t is_advancing; /* inside gate_advance() */
        uint8_t is_at_eof;    /* the client has shut down its sending side */
        uint8_t is_broken;    /* reading, writing or memory has failed */
        uint8_t is_replied;   /* evhttp has written its answer to the letter box */
        uint8_t closes;       /* the connection closes after the current answer */
};

/* Callback of the stream's event. */
void gate_on_ready(evutil_socket_t fd, short what, void *arg);

/* Enter a state and set its deadline. */
void gate_enter(struct connection *connection, enum gate_state state);

/* Parse and answer until more input or an event is needed. */
void gate_advance(struct connection *connection);

/* Have the event loop call gate_advance(). */
void gate_advance_later(struct connection *connection);

/* Returns 1 when evhttp has freed its side by itself, as it does when memory fails. */
int gate_evhttp_is_gone(const struct connection *connection);

/* Free the current request; one that is being handled is left to its handler, whose answer is dropped. */
void gate_drop_request(struct connection *connection);

/* End the connection; connection_free() follows from the event loop. */
void gate_end(struct connection *connection, enum http_end why);

/* Callback of the timer. */
void gate_on_timer(evutil_socket_t fd, short what, void *arg);

#endif
