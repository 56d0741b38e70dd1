#ifndef HTTP_INCOMING_H
#define HTTP_INCOMING_H

#include <event2/http.h>

#include "http/connections.h"
#include "http/request.h"

/**
 * incoming_new(evreq, connections, closing):
 * The request that evhttp has handed over. *closing is looked at when it is answered: not 0, the connection closes then.
 * Returns NULL when memory fails.
 */
struct http_request *incoming_new(struct evhttp_request *evreq, struct connections *connections,
                                  const int *closing) MUST_CHECK;

#endif
