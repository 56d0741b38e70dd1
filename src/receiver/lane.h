#ifndef RECEIVER_LANE_H
#define RECEIVER_LANE_H

#include "base/compiler.h"
#include "base/error.h"
#include "receiver/shared.h"

/*
 * A thread that receives deliveries: it screens a request, verifies the signature, appends the body to
 * `deliveries` or to the spool, and answers when Kafka has acknowledged the record or the disk has it. Each
 * lane has its own event loop, HTTP server and producer.
 */
struct lane;

/**
 * lane_new(shared, number, listeners, n, error):
 * Start a lane that accepts from n listening sockets, which the caller keeps. The number becomes part of the
 * thread's name. Returns NULL with the reason.
 */
struct lane *lane_new(struct receiver_shared *shared, size_t number, const int *listeners, size_t n,
                      struct error *error) MUST_CHECK;

/* Whether its event loop has run within limit_ms. From any thread. */
int lane_is_alive(struct lane *lane, int64_t limit_ms);

/* Whether it accepts connections and can append; error says why not. For another thread than the lane's. */
int lane_is_ready(struct lane *lane, struct error *error);

/* Kafka is reachable again: get ready to append. Blocks for up to timeout_ms. */
void lane_connect(struct lane *lane, int timeout_ms);

/* Release the previous configuration after a reload. New requests use the newest one in any case. */
void lane_reload(struct lane *lane);

/* Accept no more connections, answer the requests in flight, and stop. Returns at once. */
void lane_stop(struct lane *lane);

/* Whether it has stopped. From any thread. */
int lane_has_stopped(struct lane *lane);

/* Wait until it has stopped, and free it. */
void lane_free(struct lane *lane);

#endif
