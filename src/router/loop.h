#ifndef ROUTER_LOOP_H
#define ROUTER_LOOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/heartbeat.h"
#include "config/current.h"
#include "metrics/metrics.h"

/* The loop's state, for other threads. */
enum loop_state {
        LOOP_STARTING,  /* not in the group yet */
        LOOP_RESTORING, /* restoring dedup tables, or recovering */
        LOOP_ROUTING,
};

struct loop_status {
        _Atomic enum loop_state state;
        struct heartbeat heartbeat; /* beats with each iteration; waits during requests to Kafka */
        atomic_int stopping;        /* set by other threads: commit, and end */
        pthread_mutex_t mutex;      /* protects trouble; initialized by the owner */
        struct error trouble;       /* why it does not route; empty: no trouble */
};

/*
 * Run the router in the calling thread until status->stopping is set. Returns 0, or a status of sysexits.h
 * when it cannot continue, after logging why.
 */
int loop_run(struct current *current, const char *bootstrap, struct metrics *metrics,
             struct loop_status *status) MUST_CHECK;

#endif
