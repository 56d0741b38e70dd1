#ifndef SANDBOX_API_ROUTES_H
#define SANDBOX_API_ROUTES_H

#include "http/server.h"

/*
 * The routes of the HTTP API. Each call is authenticated, and answered by the function of its route.
 *
 * Callbacks and limits of the HTTP server; the callback argument is the struct sandbox.
 */
extern const struct http_callbacks api_routes_callbacks;
extern const struct http_limits api_routes_limits;

#endif
