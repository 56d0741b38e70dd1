#ifndef DAEMON_ADMIN_H
#define DAEMON_ADMIN_H

#include <event2/event.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "metrics/health.h"
#include "metrics/metrics.h"

/*
 * The admin endpoint: / (the status page), /status, /metrics, /healthz, /readyz and /readyz/ROLE. For the
 * main thread.
 */
struct admin;

/**
 * admin_new(base, config, passed, health, metrics, error):
 * Start the endpoint on the listening socket passed, which stays the caller's, or, when that is -1, where
 * config says. config, health and metrics must outlive it. Return NULL and the reason when that fails.
 */
struct admin *admin_new(struct event_base *base, const struct config *config, int passed,
                        const struct health *health, struct metrics *metrics, struct error *error) MUST_CHECK;

/* Resume accepting after a lack of memory. Call it every second. */
void admin_tick(struct admin *admin);

void admin_free(struct admin *admin);

#endif
