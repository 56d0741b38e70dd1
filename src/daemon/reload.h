#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "config/current.h"
#include "kafka/probe.h"
#include "metrics/metrics.h"

enum reload_state { RELOAD_NONE, RELOAD_RUNNING, RELOAD_DONE };

/*
 * A reload: the configuration is read in a thread of its own, because the disk and Kafka may be slow. Zeroed,
 * no reload is running.
 */
struct reload {
        struct current *current;
        struct probe *probe;
        void (*done)(void *arg);
        void *arg;
        int64_t begun_s; /* since the epoch */
        pthread_t thread;
        _Atomic enum reload_state state;
        atomic_int cancelled;
        /* The thread's until the state is RELOAD_DONE: */
        const struct config *next;
        struct error error; /* why it is NULL */
};

/**
 * reload_begin(reload, current, probe, done, arg):
 * Read the configuration file again, and log which of its changes need a restart. A router's new topics are
 * checked, which takes at most ten seconds without Kafka. The thread calls done once the state is
 * RELOAD_DONE. Only one reload may run at a time.
 */
void reload_begin(struct reload *reload, struct current *current, struct probe *probe,
                  void (*done)(void *arg), void *arg);

enum reload_state reload_state(const struct reload *reload);

/*
 * Make the reload end without result, within two seconds even when Kafka does not answer. Harmless when none
 * is running.
 */
void reload_cancel(struct reload *reload);

/**
 * reload_end(reload):
 * Wait for the reload. Return the configuration, held for the caller, or NULL when no reload is running, or
 * when it was refused; reload->error says why.
 */
const struct config *reload_end(struct reload *reload) MUST_CHECK;

/* Log an error or a warning of a configuration file. */
void reload_log_finding(const struct finding *finding);

/* Log that a reload failed. */
void reload_log_failed(const struct config *first, const char *reason);

/* Log a certificate that has expired, is not valid yet, or expires soon. */
void reload_log_certificate(const struct config *config);

#endif
