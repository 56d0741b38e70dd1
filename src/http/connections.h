#ifndef HTTP_CONNECTIONS_H
#define HTTP_CONNECTIONS_H

#include "http/gate.h"

/*
 * The connections of one server, in a list for each state. Admits and closes connections, and continues those
 * whose bodies wait for memory. Private to http/.
 */
TAILQ_HEAD(connection_list, connection);

#define RECEIVE_SIZE 8192

struct connections {
        struct event_base *base;
        struct http_limits limits;
        struct framing_limits framing_limits;
        struct tls *tls; /* NULL: plain HTTP */
        struct http_callbacks callbacks;
        void *arg;
        int wake_fd;                    /* an eventfd that the memory budget writes to; -1: no budget */
        int is_stopping;                /* connections close after their next answer */
        struct connection *next;        /* allocated ahead for the next accept */
        void *address_memory[4];        /* likewise: see give_address_memory() */
        char buffer[RECEIVE_SIZE];      /* receives the input of the connection at work */
        struct http_request *delivered; /* the request that evhttp is being called for */
        struct connection_list lists[GATE_N_STATES]; /* by state, oldest entry first */
        struct connection_list queue; /* connections that may be closed for others, next victim first */
        size_t n;                     /* connections that have not ended */
        uint64_t id_seed;
        uint64_t n_ids;
};

/* tls NULL: plain HTTP. Returns NULL when memory or descriptors fail. */
struct connections *connections_new(struct event_base *base, const struct http_limits *limits,
                                    struct tls *tls, const struct http_callbacks *callbacks,
                                    void *arg) MUST_CHECK;

/* Free all connections. NULL is harmless. */
void connections_free(struct connections *all);

/**
 * connections_prepare(all):
 * Allocate the next connection before evhttp accepts it. Accepting must pause when this fails: evhttp cannot
 * refuse a connection, and would create one without a gate. Returns 0, or -1 when memory fails.
 */
int connections_prepare(struct connections *all) MUST_CHECK;

/* Begin the prepared connection and return its letter box, for evhttp_set_bevcb(). */
struct bufferevent *connections_accept(struct connections *all);

/* Admit a connection; close another when the limit is exceeded. Returns 0, or -1 when none can be closed. */
int connections_admit(struct connections *all, const struct connection *admitted) MUST_CHECK;

/* Close the connection that connections_admit() would close. Returns 0 when there is none. */
int connections_make_room(struct connections *all);

/* Apply other limits; close connections without a request that exceed them. */
void connections_set_limits(struct connections *all, const struct http_limits *limits);

/* Close connections beyond the limits. */
void connections_keep_to_limits(struct connections *all);

/* Returns 1 when no more connections may be open. */
int connections_are_full(const struct connections *all);

/* Continue connections whose bodies have been granted memory. */
void connections_serve_waiting(struct connections *all);

/* Evict slow bodies if bodies wait for memory, in any server. Returns 1 if they do. */
int connections_evict_slow(struct connections *all);

/* Returns NULL when memory fails. */
struct connection *connection_new(struct connections *all) MUST_CHECK;

/* Make evhttp free its side of a connection that has ended or was never accepted; then close and free it. */
void connection_free(struct connection *connection);

/* Count an accepted connection; an ended connection; a refused request. */
void connections_count_in(struct connection *connection);
void connections_count_out(struct connection *connection, enum http_end why);
void connections_count_refused(struct connection *connection, const struct http_error *error, const char *id);

/* Move a connection to the list of another state. */
void connections_move(struct connection *connection, enum gate_state state);

/* Make a request id that is unique in this server. */
void connections_next_id(struct connections *all, char id[ANSWER_ID_SIZE]);

#endif
