#ifndef RECEIVER_LANE_H
#define RECEIVER_LANE_H

#include "base/compiler.h"
#include "base/error.h"
#include "receiver/shared.h"

/*
 * A thread that receives deliveries: it screens a request, verifies the signature, appends the body to `deliveries` and
 * answers when Kafka has acknowledged it. Each lane has an event loop, an HTTP server and a producer of its own.
 */
struct lane;

/**
 * lane_new(shared, number, listeners, n, error):
 * Start a lane that accepts from n listening sockets, which stay the caller's. The number is in the thread's name. Returns
 * NULL with the reason.
 */
struct lane *lane_new(struct receiver_shared *shared, size_t number, const int *listeners, size_t n,
                      struct error *error) MUST_CHECK;

/* Whether its loop has turned within limit_ms. From any thread. */
int lane_is_alive(struct lane *lane, int64_t limit_ms);

/* Whether it has a producer that can append; error says why not. For another thread than the lane's. */
int lane_is_ready(struct lane *lane, struct error *error);

/* Kafka has come back: get ready to append. Blocks for so long at most. */
void lane_connect(struct lane *lane, int timeout_ms);

/* There is a newer configuration: let go of the one before. What comes in is held against the newest in any case. */
void lane_renew(struct lane *lane);

/* Have it say in the log how it stands. Returns at once. */
void lane_log_status(struct lane *lane);

/* Ask it to stop: accept no more, answer what is in flight. Returns at once. */
void lane_stop(struct lane *lane);

/* Whether it has done so. From any thread. */
int lane_has_stopped(struct lane *lane);

/* Wait until it has stopped, and release it. */
void lane_free(struct lane *lane);

#endif
