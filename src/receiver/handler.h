#ifndef RECEIVER_HANDLER_H
#define RECEIVER_HANDLER_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "http/request.h"
#include "receiver/appender.h"
#include "receiver/shared.h"

/*
 * What a lane does with a request: screen the header section, verify the signature over the body, hand the
 * delivery to the appender; refuse it when a step fails. For the lane's thread; knows nothing of threads and
 * event loops.
 */
struct handler;

struct handler *handler_new(struct receiver_shared *shared, struct appender *appender);
void handler_free(struct handler *handler);

/*
 * The steps of a request, in the order of http_callbacks. handler_head() makes the checks for which the
 * header section suffices, handler_complete() verifies the signature; both may refuse. handler_append() hands
 * a genuine delivery to Kafka, or to the spool.
 */
void handler_head(struct handler *handler, struct http_request *request);
void handler_complete(struct handler *handler, struct http_request *request);
void handler_append(struct handler *handler, struct http_request *request);

/*
 * Return the newest configuration, which decides about sources; valid until the next call of these functions.
 */
const struct config *handler_config(struct handler *handler);

/* Answer 503 to deliveries that are complete at this monotonic time or later, since the receiver stops. */
void handler_refuse_from(struct handler *handler, int64_t from_ms);

#endif
