#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "config/current.h"
#include "kafka/probe.h"

enum reload_state { RELOAD_NONE, RELOAD_RUNNING, RELOAD_DONE };

/*
 * A reading of the configuration's file, in a thread of its own: a disk or Kafka may keep it waiting. Zeroed, it is none.
 */
struct reload {
        struct current *current;
        struct probe *probe;
        void (*done)(void *arg);
        void *arg;
        pthread_t thread;
        _Atomic enum reload_state state;
        atomic_int cancelled;
        const struct config *next; /* the thread's until the state is RELOAD_DONE */
};

/**
 * reload_begin(reload, current, probe, done, arg):
 * Read the configuration's file again, and say in the log what in it takes a restart to change. A router's topics that were
 * not named before are held against what is asked of them, which waits for Kafka for ten seconds at most. done is called
 * from the thread when the state has become RELOAD_DONE. No other may be under way.
 */
void reload_begin(struct reload *reload, struct current *current, struct probe *probe,
                  void (*done)(void *arg), void *arg);

enum reload_state reload_state(const struct reload *reload);

/* Have it end soon, with nothing: within two seconds when Kafka does not answer. Harmless when none is under way. */
void reload_cancel(struct reload *reload);

/**
 * reload_end(reload):
 * Wait for its end. Returns the configuration, held for the caller, when it may become the newest; NULL when it may not,
 * after saying why, and when no reload is under way.
 */
const struct config *reload_end(struct reload *reload) MUST_CHECK;

/* Say in the log that a configuration which was read again does not become the newest. */
void reload_log_refused(const struct config *first, const char *reason);

/* Say in the log when the certificate, if there is one, has expired or soon will. */
void reload_log_certificate(const struct config *config);

#endif
