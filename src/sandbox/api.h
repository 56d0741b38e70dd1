#ifndef SANDBOX_API_H
#define SANDBOX_API_H

#include "http/server.h"

/* What the HTTP server of a sandbox calls; the argument is the struct sandbox. */
extern const struct http_callbacks api_callbacks;
extern const struct http_limits api_limits;

#endif
