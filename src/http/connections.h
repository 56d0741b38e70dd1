#ifndef HTTP_CONNECTIONS_H
#define HTTP_CONNECTIONS_H

#include <event2/bufferevent.h>
#include <event2/http.h>

#include "base/compiler.h"
#include "http/server.h"

/* The connections of a server: made ahead, given room, found again when evhttp has replied. connection.h is one of them. */
struct connections;

/* tls is NULL for connections without. */
struct connections *connections_new(struct event_base *base, const struct http_limits *limits,
                                    struct tls *tls, const struct http_callbacks *callbacks,
                                    void *arg) MUST_CHECK;

/* Every connection must have been released. NULL is harmless. */
void connections_free(struct connections *connections);

/**
 * connections_prepare(connections):
 * Make what the next connection needs, its TLS session included, unless it is there. Without it nothing may be accepted:
 * evhttp cannot be told to do without a connection, but makes one that nobody guards. Returns 0, or -1 when memory fails.
 */
int connections_prepare(struct connections *connections) MUST_CHECK;

/*
 * Let a connection go for another one: the one that has waited longest for a request, or else has been sending one for
 * longest, since genuine requests come in one piece. Returns whether there was one.
 */
int connections_make_room(struct connections *connections);

/* Other limits from now on. Too many connections go, as far as they have no request. */
void connections_set_limits(struct connections *connections, const struct http_limits *limits);

size_t connections_count(const struct connections *connections);

/* Let those go that have become too many. */
void connections_keep_to_limits(struct connections *connections);

/* Whether there are as many as there may be. */
int connections_are_full(const struct connections *connections);

/* The bufferevent for a connection that is being accepted, for evhttp_set_bevcb(); what was prepared is used up. */
struct bufferevent *connections_open(struct connections *connections);

/* evhttp has been given a reply to send on the connection. */
void connections_replying(struct connections *connections, struct evhttp_connection *evcon);

/* evhttp has sent a reply on the connection. */
void connections_replied(struct connections *connections, struct evhttp_connection *evcon);

/* Who has connected, by the connection; none when that has gone. */
struct address connections_client(const struct connections *connections, struct evhttp_connection *evcon);

/* Whose word on who the client is counts. */
const struct http_trust *connections_trust(const struct connections *connections);

/* A name for a request that appears once: 16 hexadecimal digits and a NUL. */
void connections_next_id(struct connections *connections, char id[17]);

#endif
