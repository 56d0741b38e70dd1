#ifndef HTTP_CONNECTIONS_H
#define HTTP_CONNECTIONS_H

#include "http/gate.h"

/*
 * The connections of a server, in a list for each state: counted, admitted, closed for others, found again when there is
 * memory for their bodies. For the files of http/ alone.
 */
TAILQ_HEAD(connection_list, connection);

#define RECEIVE_SIZE 8192

struct connections {
        struct event_base *base;
        struct http_limits limits;
        struct framing_limits framing_limits;
        struct tls *tls; /* NULL: connections without */
        struct http_callbacks callbacks;
        void *arg;
        int wake_fd;               /* an eventfd, written to by the memory budget; -1: there is no budget */
        int is_stopping;           /* connections close after their next answer */
        struct connection *next;   /* made ahead, for the next accept */
        void *address_memory[4];   /* likewise: see give_address_memory() */
        char buffer[RECEIVE_SIZE]; /* for what has just been read of one of them */
        struct http_request *delivered; /* while evhttp calls the handler */
        struct connection_list
            lists[GATE_N_STATES]; /* those in a state, the one that entered it first first */
        struct connection_list
            queue; /* those that wait for their client, in the order in which they are closed for others */
        size_t n;  /* those that have not ended */
        uint64_t id_seed;
        uint64_t n_ids;
};

/* tls is NULL for connections without. Returns NULL when memory or descriptors fail. */
struct connections *connections_new(struct event_base *base, const struct http_limits *limits,
                                    struct tls *tls, const struct http_callbacks *callbacks,
                                    void *arg) MUST_CHECK;

/* Free all connections. NULL is harmless. */
void connections_free(struct connections *all);

/**
 * connections_prepare(all):
 * Make what the next connection needs before evhttp has it, unless it is there. Without it nothing may be accepted: evhttp
 * cannot be told to do without a connection, but makes one that nobody guards. Returns 0, or -1 when memory fails.
 */
int connections_prepare(struct connections *all) MUST_CHECK;

/* The letter box for a connection that is being accepted, for evhttp_set_bevcb(); what was prepared is used up. */
struct bufferevent *connections_accept(struct connections *all);

/* Admit a connection; close another when there are too many. Returns 0, or -1 when none can be closed. */
int connections_admit(struct connections *all, const struct connection *newcomer) MUST_CHECK;

/* Close a connection for another one, as connections_admit() does. Returns whether there was one. */
int connections_make_room(struct connections *all);

/* Apply other limits. Connections without a request are closed when there are too many. */
void connections_set_limits(struct connections *all, const struct http_limits *limits);

/* Close connections that have become too many. */
void connections_keep_to_limits(struct connections *all);

/* Whether there are as many as there may be. */
int connections_are_full(const struct connections *all);

/* Go on with the bodies for which there is memory by now. */
void connections_serve_waiting(struct connections *all);

/* Evict slow bodies while other bodies wait for memory anywhere. Returns whether they do. */
int connections_evict_slow(struct connections *all);

/* A connection for the next accept. Returns NULL when memory fails. */
struct connection *connection_new(struct connections *all) MUST_CHECK;

/* Have evhttp release its side of a connection that has ended or was not accepted, then close and free it. */
void connection_free(struct connection *connection);

/* Count a connection that was accepted; that has ended; a request that was refused. */
void connections_count_in(struct connection *connection);
void connections_count_out(struct connection *connection, enum http_end why);
void connections_count_refused(struct connection *connection, int status, const char *id);

/* Move a connection to the list of another state. */
void connections_move(struct connection *connection, enum gate_state state);

/* A name for a request that is used once. */
void connections_next_id(struct connections *all, char id[ANSWER_ID_SIZE]);

#endif
