#ifndef HTTP_ARRIVAL_H
#define HTTP_ARRIVAL_H

#include <event2/event.h>

#include "base/address.h"
#include "base/compiler.h"

/*
 * What may stand before TLS and HTTP on a connection from a trusted proxy: the header of proxy_header.h. Not a byte more
 * is read. A connection that begins otherwise is left as it came.
 */
struct arrival;

/**
 * Called once, from the event loop. client is who the proxy says has connected, or NULL when it says nothing; failed is
 * not 0 when the header is malformed or the connection has ended. The arrival has been released.
 */
typedef void arrival_cb(const struct address *client, int failed, void *arg);

/* Begin to read from a socket, which stays the caller's. Returns NULL when memory fails. */
struct arrival *arrival_new(struct event_base *base, evutil_socket_t fd, arrival_cb *done,
                            void *arg) MUST_CHECK;

/* End it without a call. NULL is harmless. */
void arrival_free(struct arrival *arrival);

#endif
