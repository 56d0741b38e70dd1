#ifndef RECEIVER_INTAKE_H
#define RECEIVER_INTAKE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "http/request.h"
#include "receiver/shared.h"

/*
 * What a lane does with a request, from its arrival to its answer: screen, verify, append, answer. It has the lane's
 * producer, and knows nothing of threads and event loops. For the lane's thread.
 */
struct intake;

/* A byte is written to wake_fd when intake_serve() has something to do. Returns NULL with the reason. */
struct intake *intake_new(struct receiver_shared *shared, int wake_fd, struct error *error) MUST_CHECK;

/* Every request must have been answered. NULL is harmless. */
void intake_free(struct intake *intake);

/*
 * The steps of a request, as http_callbacks has them. intake_head() makes the checks for which the head is enough,
 * intake_complete() verifies the signature; both may refuse. intake_append() hands a genuine delivery to Kafka; it is
 * answered now, or by one of the following.
 */
void intake_head(struct intake *intake, struct http_request *request);
void intake_complete(struct intake *intake, struct http_request *request);
void intake_append(struct intake *intake, struct http_request *request);

/* The newest configuration, for what sources are; until the next of these calls. */
const struct config *intake_config(struct intake *intake);

/* Answer what Kafka has reported on; replace a producer that has failed for good or comes to nothing. */
void intake_serve(struct intake *intake);

/* Answer 503 to what has waited for ack_timeout. */
void intake_expire(struct intake *intake);

/* Kafka has come back: get ready to append. Blocks for so long at most; for another thread than the lane's. */
void intake_connect(struct intake *intake, int timeout_ms);

/* Whether its producer can append; error says why not. For any thread. */
int intake_is_ready(struct intake *intake, struct error *error);

/* How many deliveries have been handed to Kafka and wait for their answers. */
size_t intake_n_pending(const struct intake *intake);

/* From a monotonic time on, answer 503 to deliveries: the receiver stops. */
void intake_refuse_from(struct intake *intake, int64_t from_ms);

/* When intake_expire() has something to do, in monotonic milliseconds; -1 when no request waits. */
int64_t intake_next_deadline(const struct intake *intake);

#endif
