#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <stdint.h>

#include "base/error.h"
#include "daemon/notify.h"
#include "daemon/parts.h"
#include "daemon/watchdog.h"

#define SERVICE_STATUS_SIZE 512

/*
 * The daemon as a service: what the service manager is told of it, as sd_notify(3) describes. For the main thread. Where
 * no manager listens nothing is sent, but the parts are watched all the same.
 */
struct service {
        struct notify notify;
        struct watchdog watchdog;
        int is_ready;        /* it was told that the daemon is */
        int reload_refused;  /* the last one was */
        int64_t told_ms;     /* monotonic times: of the last status, */
        int64_t extended_ms; /* of the last asking for more time, */
        int64_t alive_ms;    /* and of the last sign of life */
        char status[SERVICE_STATUS_SIZE];
};

/* Before threads start. */
void service_open(struct service *service);

/* How often service_tick() wants to be called, in milliseconds. */
int64_t service_interval_ms(const struct service *service);

/*
 * Look at the parts. READY=1 when the daemon can do its work for the first time: when a receiver can accept and append,
 * or, without that role, when the router is in its group. Until then more time is asked for, and STATUS tells what is
 * waited for. WATCHDOG=1 while each part lives. STATUS when it has changed, every two seconds at most.
 */
void service_tick(struct service *service, struct parts *parts);

/* A reload begins, and has ended: with the configuration taken over, or refused. */
void service_reloading(struct service *service);
void service_reloaded(struct service *service, int is_taken);

/* Stopping begins. */
void service_stopping(struct service *service);

/*
 * It goes on: what is received is answered, what is open committed. More time is asked for while the parts live and that
 * can come to an end: not when Kafka does not answer the router, or a commit takes very long. Killed then, it has lost
 * nothing.
 */
void service_drain(struct service *service, const struct parts *parts);

/* It has not come up, or must end. */
void service_failed(struct service *service, const char *reason);

void service_close(struct service *service);

#endif
