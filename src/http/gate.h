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
 * The gate in front of evhttp: one connection, from its accept to its end; for the files of http/ alone.
 *
 * The gate reads and writes the connection by a stream of its own. What evhttp believes to be the connection is a letter box:
 * a socket bufferevent whose descriptor is taken out after the accept. A request that on_complete lets pass is put into the
 * letter box as "GET / HTTP/1.1"; evhttp calls the handler, and its answer is carried from the letter box to the stream. All
 * other requests are answered by the gate, and evhttp never sees them.
 *
 *   ACCEPTED --> PROXY, if required --> HANDSHAKE, with TLS --> IDLE
 *
 *   IDLE --first byte--> HEAD --empty line--> BODY --last byte--> HANDLING --answer--> REPLYING --sent--> IDLE
 *                                             |  ^                                       `--closes--> LINGERING
 *                                             v  |
 *                                            WAITING, for memory
 *
 *   any of them --refused: an answer that closes--> REPLYING --> LINGERING
 *   any of them --gate_end()--> ENDED --from the event loop--> freed
 *
 * Each state has an absolute deadline:
 *
 *   ACCEPTED, PROXY, HEAD  header_timeout      BODY       request_timeout from the first byte of the head
 *   HANDSHAKE              handshake_timeout   WAITING    MEMORY_WAIT_MS
 *   IDLE                   idle_timeout        HANDLING   handling_timeout
 *   REPLYING               request_timeout     LINGERING  LINGER_MS
 *
 * Ownership and order at the end. The connection owns the stream, which owns the descriptor; the letter box is evhttp's,
 * with a reference of ours. gate_end() stops the callbacks of the stream, takes the connection out of all counts, and
 * gives its memory back. Later, from the event loop and thus from no callback of the connection, connection_free() first
 * has evhttp release its side, which calls shutdown() on the descriptor's number, and then closes the stream. A request
 * that is being handled outlives its connection: its answer is dropped.
 */
enum gate_state {
        GATE_ACCEPTED, /* until evhttp has set up its side */
        GATE_PROXY,    /* reads the header of the PROXY protocol */
        GATE_HANDSHAKE,
        GATE_IDLE,
        GATE_HEAD,
        GATE_BODY,
        GATE_WAITING,
        GATE_HANDLING,
        GATE_REPLYING,
        GATE_LINGERING, /* reads and discards what the client still sends, so that it sees the answer and not a reset (RFC 9112 section 9.6) */
        GATE_ENDED,
        GATE_N_STATES
};

struct connection {
        TAILQ_ENTRY(connection) entry; /* in the list of those in its state */
        TAILQ_ENTRY(connection) turn;  /* in the queue of those that may be closed for others */
        struct connections *all;
        struct bufferevent *letter_box; /* one reference is ours */
        struct stream stream;
        struct event timer;                /* for the deadline, and to go on from the event loop */
        struct proxy_header *proxy_header; /* in GATE_PROXY */
        const char *input; /* what was read and has not been looked at: in `kept`, or in connections.buffer */
        size_t input_len;
        char *kept; /* from the pool; NULL: nothing is kept from one pass of the event loop to the next */
        struct framing framing;
        struct http_request *request; /* from the end of its head until its answer; else NULL */
        struct address client;        /* the peer, or whom a trusted proxy names by the PROXY protocol */
        enum gate_state state;
        enum http_end end; /* why it ends, when the client closes it */
        int64_t
            since_ms; /* monotonic: when it entered its state, or, in GATE_BODY and GATE_WAITING, the request began */
        int64_t deadline_ms;  /* monotonic, of the state */
        int64_t armed_ms;     /* when the timer fires, at the deadline or before; 0: it is not set */
        uint64_t n_lingered;  /* bytes discarded in GATE_LINGERING */
        uint8_t is_unix;      /* connected through a Unix-domain socket */
        uint8_t is_queued;    /* to be closed for others */
        uint8_t has_asked;    /* a whole request has come */
        uint8_t is_counted;   /* among the client's connections */
        uint8_t is_advancing; /* gate_advance() is at work */
        uint8_t is_at_eof;    /* the client sends no more */
        uint8_t is_broken;    /* nothing can be read or written any more */
        uint8_t is_replied;   /* evhttp has written its answer to the letter box */
        uint8_t closes;       /* after the answer under way */
};

struct http_request {
        struct connection *connection; /* NULL: it has ended */
        struct connections *all;
        struct evhttp_request *evreq; /* while evhttp has the request; NULL: it is the gate's */
        struct head head;
        char *text; /* of the head, from the pool */
        char *body; /* from the pool, or NULL */
        size_t body_len;
        size_t body_size;            /* memory of body */
        uint64_t reserved;           /* of the memory budget */
        struct memory_waiter waiter; /* in GATE_WAITING */
        int64_t reserved_ms;         /* monotonic, in GATE_BODY: when the body got its memory */
        int64_t mark_ms;             /* likewise: when slowness was last measured */
        uint64_t mark_len;           /* likewise: how much of the body had come */
        int64_t expected_ms;         /* likewise: how much longer it was expected to take */
        char *answer;                /* the gate's, until the body has been discarded */
        size_t answer_len;
        struct address client;
        enum answer_connection answer_connection; /* as the answer says */
        int is_too_large;
        int is_optional;  /* its body is of use, but not waited for */
        int is_discarded; /* its body is read and dropped */
        char id[ANSWER_ID_SIZE];
        max_align_t data[HTTP_REQUEST_DATA_SIZE / sizeof(max_align_t)];
};

/* gate_accept.c: from the accept to the first byte of TLS or a request */

/* evhttp is about to take its letter box as a connection; gate_attach() follows from the event loop. */
void gate_accept(struct connection *connection);
void gate_attach(struct connection *connection);

/* The header of the PROXY protocol, or the handshake, may go on. */
void gate_read_proxy(struct connection *connection);
void gate_shake_hands(struct connection *connection);

/* gate_read.c: requests */

/* Read from the stream, unless there is input to look at. Returns whether something has come, be it the end. */
int gate_receive(struct connection *connection);

/* Look at the input, up to the next thing to do. Returns whether there may be more to do at once. */
int gate_read(struct connection *connection);

/* So many bytes of the input have been looked at. */
void gate_consume(struct connection *connection, size_t n);

/* Keep the rest of the input where no other connection's will take its place. */
void gate_keep_input(struct connection *connection);

/* The connection in GATE_WAITING has got its memory. */
void gate_take_granted(struct connection *connection);

/* gate_write.c: answers */

/* Write to the client. */
void gate_write(struct connection *connection, const char *text, size_t len);

/* Write the answer that the request holds. */
void gate_send_answer(struct connection *connection);

/* The handler has answered: carry out what evhttp has written, now or when gate_advance() goes on. */
void gate_send_evhttp_answer(struct connection *connection);
void gate_carry_answer(struct connection *connection);

/* The answer has left the process. */
void gate_end_reply(struct connection *connection);

/* Answer with an error, or with the answer that the request holds, and close. */
void gate_refuse(struct connection *connection, int status, const char *reason);

/* gate.c: states and ends */

/* The stream's callback. */
void gate_on_ready(evutil_socket_t fd, short what, void *arg);

/* Go to a state, with its deadline. */
void gate_enter(struct connection *connection, enum gate_state state);

/* Read and answer as far as it goes; now, or from the event loop. */
void gate_advance(struct connection *connection);
void gate_go_on_later(struct connection *connection);

/* evhttp frees its side of a connection by itself when memory fails. */
int gate_evhttp_is_gone(const struct connection *connection);

/* Free the request that the gate still has, or leave it to its handler, who will answer in vain. */
void gate_drop_request(struct connection *connection);

/* The connection ends; connection_free() follows from the event loop. */
void gate_end(struct connection *connection, enum http_end why);

/* The deadline has come, or gate_go_on_later() has been called. */
void gate_on_timer(evutil_socket_t fd, short what, void *arg);

/* request.c */

/* A request, made of the head that framing has found. Returns NULL when memory fails. */
struct http_request *request_new(struct connection *connection) MUST_CHECK;
void request_free(struct http_request *request);

/* Memory for so many bytes of the body, for which there is room in the budget. Returns 0 or -1. */
int request_resize_body(struct http_request *request, size_t size) MUST_CHECK;

/* The body has come: give back what it has reserved beyond its length. */
void request_trim_memory(struct http_request *request);

/* Read and drop the body. */
void request_discard_body(struct http_request *request);

/* What the answer does to the connection. */
enum answer_connection request_connection(const struct http_request *request);

/* Let the answer that the request holds say that the connection closes. */
void request_close_after(struct http_request *request);

#endif
