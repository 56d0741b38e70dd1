#ifndef ROUTER_ROUTER_H
#define ROUTER_ROUTER_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/current.h"
#include "kafka/probe.h"
#include "metrics/health.h"
#include "metrics/metrics.h"

/*
 * The half that faces only Kafka, a thread of its own: reads `deliveries`, decides each record once, and publishes what
 * it decides together with the offsets it has come to, in one transaction a batch.
 */
struct router;

/**
 * router_new(current, bootstrap, metrics, probe, stopped, arg, error):
 * Start it; it begins to route when the probe has found the topics right. stopped is called from its thread when it ends
 * by itself, for a reason that it has logged. Returns NULL with the reason.
 */
struct router *router_new(struct current *current, const char *bootstrap, struct metrics *metrics,
                          const struct probe *probe, void (*stopped)(void *arg), void *arg,
                          struct error *error) MUST_CHECK;

/* For health_add(): it is in the group, and reads and commits go on. */
int router_is_ready(void *router, char reason[HEALTH_REASON_SIZE]);

/* 0, or the exit status (sysexits.h) with which it ended by itself. */
int router_exit_status(const struct router *router);

/* Whether its loop has turned within limit_ms, or it waits for Kafka; else writes that it stands still. */
int router_is_alive(struct router *router, int64_t limit_ms, char reason[HEALTH_REASON_SIZE]);

/* Commit what is decided, and leave. Returns at once; again is harmless. */
void router_stop(struct router *router);

/* Whether that is done. */
int router_has_stopped(const struct router *router);

/* Say in the log how it stands; where, its thread says when it comes to it. */
void router_log_status(struct router *router);

/* Stop, wait for that, and release. NULL is harmless. */
void router_free(struct router *router);

#endif
