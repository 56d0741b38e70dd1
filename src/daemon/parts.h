#ifndef DAEMON_PARTS_H
#define DAEMON_PARTS_H

#include <stdint.h>

#include <event2/event.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/activation.h"
#include "config/current.h"
#include "daemon/admin.h"
#include "daemon/reload.h"
#include "kafka/embedded.h"
#include "kafka/probe.h"
#include "metrics/health.h"
#include "metrics/metrics.h"
#include "receiver/receiver.h"
#include "router/router.h"

/* The parts of the daemon. For the main thread. */
struct parts {
        const struct config *config; /* the first configuration */
        const struct activation *activation;
        struct current *current;
        struct embedded *embedded; /* NULL: Kafka is elsewhere */
        const char *bootstrap;     /* of the embedded broker, or NULL: as configured */
        struct metrics *metrics;
        struct health health;
        struct probe *probe;
        struct receiver *receiver; /* NULL without the role */
        struct router *router;     /* NULL without the role */
        struct admin *admin;       /* NULL: off */
        struct reload reload;
        uint64_t n_reloads;          /* successful ones */
        int64_t receiver_stopped_ms; /* monotonic; 0: the receiver runs, or was not asked to stop */
};

/**
 * parts_open(parts, config, activation, base, changed, arg, error):
 * Start everything that the configuration asks for, on the passed sockets where there are any; the admin
 * endpoint runs on base. Other threads call changed when parts_note_changes() is to be called. Return 0, or
 * -1 and the reason. parts_close() is needed in either case.
 */
int parts_open(struct parts *parts, const struct config *config, const struct activation *activation,
               struct event_base *base, void (*changed)(void *arg), void *arg,
               struct error *error) MUST_CHECK;

/**
 * parts_stop(parts):
 * Stop the parts in the order in which deliveries flow, so that the last received delivery is still routed.
 * Never blocks. Return 1 when all have stopped; else call it again.
 */
int parts_stop(struct parts *parts) MUST_CHECK;

/* Return, in words, what parts_stop() waits for. */
const char *parts_stopping(const struct parts *parts);

/*
 * Return whether parts_stop() will finish. Answers have deadlines, but a commit waits for Kafka, in vain when
 * the transaction coordinator does not answer.
 */
int parts_stop_can_end(const struct parts *parts);

/* Stop the parts that still run, wait for them, and free everything. */
void parts_close(struct parts *parts);

/*
 * Return whether all loops, of the lanes and of the router, have turned within limit_ms, and the receiver's
 * sockets accept connections; else write which one does not.
 */
int parts_are_alive(const struct parts *parts, int64_t limit_ms, char reason[HEALTH_REASON_SIZE]);

/*
 * Return whether the receiver can accept and append or, without that role, the router is in its group and
 * reads.
 */
int parts_can_serve(const struct parts *parts);

/*
 * Pass on changes from other threads. Return 0, or the exit status (sysexits.h) of a part that has failed and
 * logged why.
 */
int parts_note_changes(struct parts *parts) MUST_CHECK;

/* Return why, for the service manager; in reason, or a constant. */
const char *parts_why(const struct parts *parts, char reason[PROBE_REASON_SIZE]);

/* Do what is due every second. */
void parts_tick(struct parts *parts);

/*
 * Begin to read the configuration in another thread, which calls changed when done; parts_end_reload() must
 * follow.
 */
void parts_begin_reload(struct parts *parts, void (*changed)(void *arg), void *arg);

enum reload_state parts_reload_state(const struct parts *parts);

/*
 * Apply the configuration that was read, except options that need a restart, or keep the previous one as a
 * whole; log which. Return whether it was applied.
 */
int parts_end_reload(struct parts *parts);

#endif
