#ifndef HTTP_ENTRANCE_H
#define HTTP_ENTRANCE_H

#include "http/connection.h"

/* What becomes of a connection between its being accepted and its first request: room, the client, its limits. */

/* It is being accepted: it waits for evhttp to have made its side of it. */
void entrance_accept(struct connection *connection);

/**
 * entrance_attach(connection):
 * evhttp has made its side of the connection: its argument on the bufferevent is the evhttp_connection, whose close
 * callback tells when it goes. If it failed to, the bufferevent has been given up and only our reference is left.
 */
void entrance_attach(struct connection *connection);

/* No longer wait for what a proxy says: the bufferevent has the descriptor again, to read from it or to close it. */
void entrance_stop(struct connection *connection);

#endif
