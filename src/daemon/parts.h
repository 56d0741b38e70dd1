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

/* What the daemon is made of. The main thread holds them. */
struct parts {
        const struct config *config; /* the first */
        const struct activation *activation;
        struct current *current;
        struct embedded *embedded; /* NULL: brokers of one's own */
        const char *bootstrap;     /* NULL: the configured one */
        struct metrics *metrics;
        struct health health;
        struct probe *probe;
        struct receiver *receiver; /* NULL: another process has the role; router as well */
        struct router *router;
        struct admin *admin; /* NULL: not wanted */
        struct reload reload;
        int64_t started_ms;  /* monotonic */
        uint64_t n_renewals; /* configurations that were taken over after the first */
        int64_t renewed_ms;  /* when the last was, the first included, since the epoch */
        int was_refused;     /* that of the last attempt */
        int64_t answered_ms; /* monotonic: since when no receiver runs; 0: it has not been asked to stop */
};

/**
 * parts_open(parts, config, activation, base, changed, arg, error):
 * Start all that the configuration asks for, on the sockets that were passed on where there are any; the admin endpoint
 * runs on base. changed is called from other threads when parts_note_changes() has something to do. Returns 0, or -1 with
 * the reason; parts_close() is needed in either case.
 */
int parts_open(struct parts *parts, const struct config *config, const struct activation *activation,
               struct event_base *base, void (*changed)(void *arg), void *arg,
               struct error *error) MUST_CHECK;

/**
 * parts_stop(parts):
 * Begin to stop, or go on with it, in the order in which deliveries flow: what is received last is still routed. Never
 * blocks; to be called until it returns 1: all have stopped.
 */
int parts_stop(struct parts *parts) MUST_CHECK;

/* What parts_stop() waits for, in words. */
const char *parts_stopping(const struct parts *parts);

/*
 * Whether that will come to its end: answers have deadlines, but a commit waits for Kafka, and in vain when the coordinator
 * of transactions does not answer.
 */
int parts_stop_can_end(const struct parts *parts);

/* Stop what has not stopped, wait for that, and release all. */
void parts_close(struct parts *parts);

/*
 * Whether the loop of each lane and of the router has turned within limit_ms, and the receiver can be connected to; else
 * writes which one has not, or which socket was shut down.
 */
int parts_are_alive(const struct parts *parts, int64_t limit_ms, char reason[HEALTH_REASON_SIZE]);

/* Whether a receiver can accept and append; without that role, whether the router is in its group and reads. */
int parts_can_serve(const struct parts *parts);

/* How things stand, in one line for a person. */
void parts_describe(const struct parts *parts, char *text, size_t size);

/* Pass on what has changed. Returns 0, or the exit status (sysexits.h) of a part that cannot go on; it has said why. */
int parts_note_changes(struct parts *parts) MUST_CHECK;

/* What is looked at every second. */
void parts_tick(struct parts *parts);

/*
 * Begin to read the configuration again, in another thread; changed is called from there when that is done, and
 * parts_end_renewal() is to follow.
 */
void parts_begin_renewal(struct parts *parts, void (*changed)(void *arg), void *arg);

enum reload_state parts_renewal(const struct parts *parts);

/*
 * Take the configuration over when it may be: all that can change without a restart is, or nothing is; the log says which.
 * Returns whether it was.
 */
int parts_end_renewal(struct parts *parts);

#endif
