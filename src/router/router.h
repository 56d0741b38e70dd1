#ifndef ROUTER_ROUTER_H
#define ROUTER_ROUTER_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/current.h"
#include "kafka/probe.h"
#include "metrics/health.h"
#include "metrics/metrics.h"

/*
 * The half that faces only Kafka, in a thread of its own: reads `deliveries`, decides each record once, and
 * publishes the results together with its offsets, in one transaction per batch.
 */
struct router;

/**
 * router_new(current, bootstrap, metrics, probe, stopped, arg, error):
 * Start the thread; it begins to route when the probe has verified the topics. stopped is called from this
 * thread when it ends by itself, after it has logged why. Returns NULL with the reason.
 */
struct router *router_new(struct current *current, const char *bootstrap, struct metrics *metrics,
                          struct probe *probe, void (*stopped)(void *arg), void *arg,
                          struct error *error) MUST_CHECK;

/* For health_add(): whether it is in the group, and reads and commits proceed. */
int router_is_ready(void *router, char reason[HEALTH_REASON_SIZE]);

/* Return 0, or the exit status (sysexits.h) with which it ended by itself. */
int router_exit_status(const struct router *router);

/* Whether its loop has run within limit_ms, or waits for Kafka; otherwise write that it is stuck. */
int router_is_alive(struct router *router, int64_t limit_ms, char reason[HEALTH_REASON_SIZE]);

/* Commit the open batch, leave the group, and stop. Returns at once; a second call is harmless. */
void router_stop(struct router *router);

/* Whether it has stopped. */
int router_has_stopped(const struct router *router);

/* Stop, wait for the thread, and free. NULL is harmless. */
void router_free(struct router *router);

#endif
