#ifndef DAEMON_PARTS_H
#define DAEMON_PARTS_H

#include <event2/event.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/current.h"
#include "kafka/embedded.h"
#include "kafka/probe.h"
#include "ops/admin.h"
#include "ops/health.h"
#include "ops/metrics.h"
#include "receiver/receiver.h"
#include "router/router.h"

/* What the daemon is made of. The main thread holds them. */
struct parts {
        const struct config *config; /* the first */
        struct current *current;
        struct embedded *embedded; /* NULL: brokers of one's own */
        const char *bootstrap;     /* NULL: the configured one */
        struct metrics *metrics;
        struct health health;
        struct probe *probe;
        struct receiver *receiver; /* NULL: another process has the role; router as well */
        struct router *router;
        struct admin *admin; /* NULL: not wanted */
};

/**
 * parts_open(parts, config, base, changed, arg, error):
 * Start all that the configuration asks for; the admin endpoint runs on base. changed is called from other threads when
 * parts_note_changes() has something to do. Returns 0, or -1 with the reason; parts_close() is needed in either case.
 */
int parts_open(struct parts *parts, const struct config *config, struct event_base *base,
               void (*changed)(void *arg), void *arg, struct error *error) MUST_CHECK;

/* Stop them, in the order in which deliveries flow, and wait for that: what is received last is still routed. */
void parts_close(struct parts *parts);

/* Pass on what has changed. Returns 0, or the exit status (sysexits.h) of a part that cannot go on; it has said why. */
int parts_note_changes(struct parts *parts) MUST_CHECK;

/* What is looked at every second. */
void parts_tick(struct parts *parts);

/* Read the configuration again. Sources, secrets and the certificate are taken over, or nothing is; the log says which. */
void parts_renew(struct parts *parts);

#endif
