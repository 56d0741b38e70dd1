#ifndef ROUTER_LOOP_H
#define ROUTER_LOOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/pulse.h"
#include "config/current.h"
#include "ops/metrics.h"

/* What a worker shows of itself to other threads. */
enum loop_state {
        LOOP_STARTING,  /* not in the group yet */
        LOOP_RESTORING, /* reading back, or recovering */
        LOOP_ROUTING,
};

struct loop_status {
        _Atomic enum loop_state state;
        struct pulse pulse;    /* beats with each step, and waits while Kafka is asked */
        atomic_int stopping;   /* set by others: commit and end */
        atomic_int is_asked;   /* set by others: say in the log where it stands */
        pthread_mutex_t mutex; /* over trouble; the owner's to make */
        struct error trouble;  /* why it does not route; empty: nothing is wrong */
};

/*
 * Runs the router in the calling thread until status->stopping is set. Returns 0, or a status of sysexits.h when it
 * cannot go on, after logging why.
 */
int loop_run(struct current *current, const char *bootstrap, struct metrics *metrics,
             struct loop_status *status) MUST_CHECK;

#endif
