#ifndef HTTP_SESSION_H
#define HTTP_SESSION_H

#include "http/connection.h"

/* A connection's bufferevent, with TLS or without; evhttp gives it the descriptor. Returns NULL when memory fails. */
struct bufferevent *session_new(struct connection *connection) MUST_CHECK;

/* The connection is about to be freed: remove its callback from the TLS session, which the bufferevent may keep longer. */
void session_detach(const struct connection *connection);

/* Whether the certificate is the one that another session would get now. Only with TLS. */
int session_is_current(const struct connection *connection);

/* Before the socket is shut: say goodbye, or log why it has failed. After a failure there is nothing more to say. */
void session_end(const struct connection *connection);

#endif
