#ifndef RECEIVER_APPENDER_H
#define RECEIVER_APPENDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "receiver/pending.h"
#include "receiver/screen.h"
#include "receiver/shared.h"

/*
 * A lane's producer, and the deliveries that wait for Kafka's acknowledgement, or with a spool for the disk.
 * A producer that has failed for good, or that makes no progress although Kafka is reachable, is replaced;
 * connections and requests stay. For the lane's thread, but for the two functions that say otherwise.
 */
struct appender;

/* A byte is written to wake_fd when appender_serve() has something to do. Returns NULL with the reason. */
struct appender *appender_new(struct receiver_shared *shared, int wake_fd, struct error *error) MUST_CHECK;

/* Every request must have been answered. NULL is harmless. */
void appender_free(struct appender *appender);

/* Replace the producer if it needs to be. Returns whether there is a producer. */
int appender_renew(struct appender *appender);

/**
 * appender_append(appender, request, screened, original, began_ns):
 * Hand a genuine delivery to Kafka, or to the spool while Kafka is away. It is answered when Kafka has
 * acknowledged it or the disk has it; after ack_timeout, counted from began_ns, see appender_expire().
 * original is NULL, or the delivery-id with which the signature first came, for a replay. Returns NULL; or
 * why that is not possible now, a constant text, and the request is still to be answered.
 */
const char *appender_append(struct appender *appender, struct http_request *request,
                            const struct screened *screened, const char *original,
                            int64_t began_ns) MUST_CHECK;

/* Answer the deliveries that Kafka or the spool has reported on. */
void appender_serve(struct appender *appender);

/* Give deliveries that have waited for ack_timeout to the spool, or answer 503 if it takes none. */
void appender_expire(struct appender *appender);

/* When appender_expire() has something to do, in monotonic milliseconds; -1 when no request waits. */
int64_t appender_next_deadline(const struct appender *appender);

/*
 * Kafka is reachable again: get ready to append. Blocks for up to timeout_ms; for another thread than the
 * lane's.
 */
void appender_connect(struct appender *appender, int timeout_ms);

/* Whether the producer can append; error says why not. From any thread. */
int appender_is_ready(struct appender *appender, struct error *error);

#endif
