#ifndef HTTP_CONNECTION_H
#define HTTP_CONNECTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/bufferevent.h>
#include <event2/http.h>

#include "base/address.h"
#include "base/compiler.h"
#include "http/arrival.h"
#include "http/framing.h"
#include "http/refusal.h"
#include "http/server.h"

/*
 * One connection, and what those of a server have in common; for connection.c, connections.c, entrance.c, session.c and tap.c alone.
 *
 * Its bytes go through framing.c before evhttp sees them (tap.c); a connection whose bytes are refused is taken away from
 * evhttp (refusal.c). Deadlines are absolute, one timer a connection:
 *
 *   arriving --from a trusted proxy: its header--> handshake, with TLS --done--> idle
 *   header_timeout                                 handshake_timeout
 *
 *   idle --first byte--> head --empty line--> body --last byte--> handling --reply--> replying --sent--> idle
 *   idle_timeout         header_timeout       request_timeout     none                request_timeout
 *
 * and from any of these to refused, for as long as refusal.c takes.
 *
 * The body's deadline counts from the first byte of its head; the beginning of a request that was pipelined is the answer to
 * the one before it.
 *
 * With TLS, what is judged is what was decrypted.
 *
 * Of requests that are pipelined, one is handled after the other; nothing is read while a complete one waits, so that
 * what waits is never more than what one read brings.
 */
enum stage {
        STAGE_ARRIVING,
        STAGE_HANDSHAKE,
        STAGE_IDLE,
        STAGE_HEAD,
        STAGE_BODY,
        STAGE_HANDLING,
        STAGE_REPLYING,
        STAGE_REFUSED
};

struct connection {
        TAILQ_ENTRY(connection) entry; /* in the list of those in its stage, where there is one */
        struct connections *all;
        struct bufferevent *bev;         /* one reference is ours */
        struct evhttp_connection *evcon; /* NULL until evhttp has made it */
        struct event *timer;
        struct framing framing;
        struct address client;   /* the peer's, or what a trusted proxy says */
        int counted;             /* among the client's connections */
        struct arrival *arrival; /* while it reads, the bufferevent has no descriptor; else NULL */
        struct refusal *refusal; /* answers it in evhttp's place; NULL also when memory failed for that */
        enum stage stage;
        int64_t deadline_ms; /* monotonic, of the stage; 0: none */
        int64_t armed_ms;    /* when the timer fires, the deadline's or an earlier one's; 0: it is not set */
        int64_t since_ms;    /* monotonic: when it entered its stage, or, in STAGE_BODY, the request began */
        size_t n_complete;   /* requests that have come completely and are not answered */
        uint64_t held;       /* bytes of bodies that take room */
        uint64_t slack;      /* of them, those of the framing's slack for the body under way */
        uint64_t held_ahead; /* those of them that are of a request which has not come completely */
        struct head_fault
            due; /* status 0: none; else the refusal that follows when n_complete requests are answered */
        int oversize_status; /* what a body that grows too large would be answered */
        evutil_socket_t fd;
        int refused;       /* taken away from evhttp */
        int broken_off;    /* by us */
        enum http_end end; /* why it ends, when it does */
};

struct connections {
        struct event_base *base;
        struct http_limits limits;
        struct tls *tls; /* NULL: connections without */
        const struct http_callbacks *callbacks;
        void *arg;
        struct connection *spare; /* made ahead, for the next that is accepted */
        void *address_memory[4];  /* likewise: see give_address_memory() */
        /* Those that have no request: arriving, in their handshake, or idle; the one that has waited longest first. */
        TAILQ_HEAD(connection_list, connection) waiting;
        struct connection_list heads;    /* those in STAGE_HEAD, the one that began first first */
        struct connection_list bodies;   /* those in STAGE_BODY, likewise */
        struct connection_list replies;  /* those in STAGE_REPLYING, likewise */
        struct connection_list refusals; /* those in STAGE_REFUSED, likewise */
        struct connection **by_fd;
        size_t by_fd_size;
        size_t n;
        uint64_t id_seed;
        uint64_t n_ids;
};

/* One for the next that is accepted. Returns NULL when memory fails. */
struct connection *connection_new(struct connections *all) MUST_CHECK;

/* One that nobody has yet goes. */
void connection_discard(struct connection *connection);

/* Go on to a stage, with the deadline that belongs to it. */
void connection_enter(struct connection *connection, enum stage stage);

/* evhttp has been given a reply to send, and the body of the request has been released. */
void connection_replying(struct connection *connection);

/* evhttp has sent a reply. */
void connection_replied(struct connection *connection);

/* Answer with an error and close; what has come completely before is answered first. */
void connection_refuse(struct connection *connection, int status, const char *reason);

/* Body bytes have come. Returns 0, or -1 when there is no room for them; they take it all the same. */
int connection_take_room(struct connection *connection, uint64_t bytes) MUST_CHECK;

/* Let evhttp release the connection, as if the client had broken it. Not while a request of it is handled. */
void connection_break_off(struct connection *connection, enum http_end why);

/* evhttp releases the connection; its close callback. */
void connection_on_close(struct evhttp_connection *evcon, void *arg);

/* evhttp has released the connection, or never had it: it goes. */
void connection_free(struct connection *connection);

/* One more has come: when there are too many, another one goes. Returns 0, or -1 when none can. */
int connections_admit(struct connections *all, const struct connection *newcomer) MUST_CHECK;

/* Keep a connection by its descriptor. Returns 0, or -1 when memory fails. */
int connections_keep(struct connections *all, struct connection *connection) MUST_CHECK;

#endif
