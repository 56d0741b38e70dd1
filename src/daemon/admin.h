#ifndef DAEMON_ADMIN_H
#define DAEMON_ADMIN_H

#include <event2/event.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "metrics/health.h"
#include "metrics/metrics.h"

/*
 * The admin endpoint: GET /metrics, /healthz (the process lives), /readyz (each role works, or why not), and / for a
 * person.
 */
struct admin;

/*
 * Where config says, or on passed, a listening socket that stays the caller's; -1: none. config, health and metrics outlive
 * it. Returns NULL with the reason.
 */
struct admin *admin_new(struct event_base *base, const struct config *config, int passed,
                        const struct health *health, const struct metrics *metrics,
                        struct error *error) MUST_CHECK;

/*
 * Go on accepting where memory was short, and log when its socket was shut down by others. To be called every second or
 * so; NULL is harmless.
 */
void admin_tick(struct admin *admin);

/* NULL is harmless. */
void admin_free(struct admin *admin);

#endif
