#ifndef RECEIVER_HANDLER_H
#define RECEIVER_HANDLER_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "http/request.h"
#include "receiver/shared.h"

/*
 * What a lane does with a request, from its arrival to its answer: screen, verify, append, answer. It has the lane's
 * producer, and knows nothing of threads and event loops. For the lane's thread.
 */
struct handler;

/* A byte is written to wake_fd when handler_serve() has something to do. Returns NULL with the reason. */
struct handler *handler_new(struct receiver_shared *shared, int wake_fd, struct error *error) MUST_CHECK;

/* Every request must have been answered. NULL is harmless. */
void handler_free(struct handler *handler);

/*
 * The steps of a request, as http_callbacks has them. handler_head() makes the checks for which the head is enough,
 * handler_complete() verifies the signature; both may refuse. handler_append() hands a genuine delivery to Kafka; it is
 * answered now, or by one of the following.
 */
void handler_head(struct handler *handler, struct http_request *request);
void handler_complete(struct handler *handler, struct http_request *request);
void handler_append(struct handler *handler, struct http_request *request);

/* The newest configuration, for what sources are; until the next of these calls. */
const struct config *handler_config(struct handler *handler);

/* Answer what Kafka has reported on; replace a producer that has failed for good or comes to nothing. */
void handler_serve(struct handler *handler);

/* Answer 503 to what has waited for ack_timeout. */
void handler_expire(struct handler *handler);

/* Kafka has come back: get ready to append. Blocks for so long at most; for another thread than the lane's. */
void handler_connect(struct handler *handler, int timeout_ms);

/* Whether its producer can append; error says why not. For any thread. */
int handler_is_ready(struct handler *handler, struct error *error);

/* How many deliveries have been handed to Kafka and wait for their answers. */
size_t handler_n_pending(const struct handler *handler);

/* From a monotonic time on, answer 503 to deliveries: the receiver stops. */
void handler_refuse_from(struct handler *handler, int64_t from_ms);

/* When handler_expire() has something to do, in monotonic milliseconds; -1 when no request waits. */
int64_t handler_next_deadline(const struct handler *handler);

#endif
